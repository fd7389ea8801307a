package activities

// WorthALine is worthALine.
var WorthALine = worthALine
