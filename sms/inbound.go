package sms

import (
	"net/url"
	"strings"
)

// InboundPath is where a number's inbound texts go, under the public URL.
const InboundPath = "/v1/webhooks/twilio/inbound"

// Keyword is what an inbound text asks for.
type Keyword string

// Keywords.
const (
	KeywordNone  Keyword = ""
	KeywordStop  Keyword = "STOP"
	KeywordStart Keyword = "START"
	KeywordHelp  Keyword = "HELP"
)

// keywords are the words that Twilio acts on by itself, so that we hold the same
// of a person as it does.
var keywords = map[string]Keyword{
	"STOP": KeywordStop, "STOPALL": KeywordStop, "UNSUBSCRIBE": KeywordStop, "CANCEL": KeywordStop,
	"END": KeywordStop, "QUIT": KeywordStop, "REVOKE": KeywordStop, "OPTOUT": KeywordStop,
	"START": KeywordStart, "YES": KeywordStart, "UNSTOP": KeywordStart,
	"HELP": KeywordHelp, "INFO": KeywordHelp,
}

// Inbound is a text that a person sent.
type Inbound struct {
	ID      string
	From    string // E.164
	To      string
	Keyword Keyword
}

// ParseInbound reads the form of an inbound text. With Advanced Opt-Out Twilio
// knows words in other languages and says what it made of them in OptOutType:
// its word counts. Otherwise only a text that is nothing but the keyword is one,
// in any case.
func ParseInbound(form url.Values) Inbound {
	in := Inbound{ID: form.Get("MessageSid"), From: form.Get("From"), To: form.Get("To")}
	switch k := Keyword(strings.ToUpper(strings.TrimSpace(form.Get("OptOutType")))); k {
	case KeywordStop, KeywordStart, KeywordHelp:
		in.Keyword = k
	default:
		in.Keyword = keywords[strings.ToUpper(strings.TrimSpace(form.Get("Body")))]
	}
	return in
}

// EmptyTwiML answers an inbound text without a text of ours: Twilio answers the
// keywords itself.
const EmptyTwiML = `<?xml version="1.0" encoding="UTF-8"?><Response/>`
