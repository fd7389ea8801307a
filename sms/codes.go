package sms

import "net/http"

// codes is what Twilio's error codes mean for the next text; docs/texts.md says
// why. Some come in the answer to a send, some in a status callback, some in
// either. What is not here goes by classOf.
var codes = map[int]Class{
	// The number.
	21211: Never, // is not valid
	21214: Never, // cannot be reached
	21217: Never, // is not valid
	21265: Never, // is a short code
	21408: Never, // is in a region that the account may not text
	21610: Never, // has opted out
	21612: Never, // has no route from our sender
	21614: Never, // is not a mobile
	21635: Never, // is a landline
	30004: Never, // blocks what comes from us
	30005: Never, // is unknown, or no longer in service
	30006: Never, // is a landline, or its carrier takes no texts
	60205: Never, // is a landline

	// Us: the next number would fare no better.
	20003: StopAll, // the credentials are wrong
	20005: StopAll, // the account is not active
	20008: StopAll, // test credentials
	21212: StopAll, // from is not valid
	21222: StopAll, // the account SID is malformed
	21224: StopAll, // the auth token is malformed
	21266: StopAll, // from and to are the same
	21267: StopAll, // an alphanumeric sender on a trial account
	21603: StopAll, // no from
	21606: StopAll, // from is not ours
	21608: StopAll, // a trial account texts only numbers that it knows
	21609: StopAll, // the status callback is no URL
	21659: StopAll, // from is not a Twilio number
	21660: StopAll, // from belongs to another account
	21661: StopAll, // from cannot text
	21701: StopAll, // no such messaging service
	21703: StopAll, // the messaging service has no numbers
	21705: StopAll, // the messaging service is not valid
	30002: StopAll, // the account is suspended
	30007: StopAll, // filtered: the words or the sender are taken for spam
	30018: StopAll, // the carrier wants the sender registered
	30024: StopAll, // the sender is not provisioned at the carrier
	30032: StopAll, // the toll-free number is not verified
	30034: StopAll, // the number is not registered for A2P 10DLC

	// The moment.
	20429: Later, // too many requests
	20500: Later, // Twilio is broken
	20503: Later, // Twilio is away
	21611: Later, // our queue at Twilio is full
	30001: Later, // our queue at Twilio is full
	30003: Later, // switched off, or out of reach
	30008: Later, // no reason known
	30017: Later, // the carrier is congested
	30022: Later, // faster than the carrier lets us
	30036: Later, // the validity period ran out first
	30410: Later, // the carrier did not answer in time
}

// OptedOut says that a code is that of a number that has texted STOP.
func OptedOut(code int) bool { return code == 21610 }

// ClassOf is what a code means; status is that of the answer it came in, 0 for a
// callback. An unknown code may pass or be mended, and closing a place for it may
// not, so it is Later, unless the answer says that we may not ask at all.
func ClassOf(code, status int) Class {
	if class, known := codes[code]; known {
		return class
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		return StopAll
	}
	return Later
}
