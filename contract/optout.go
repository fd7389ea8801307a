package contract

import "time"

// States of an OptOut.
const (
	OptedOut = "opted_out"
	OptedIn  = "opted_in" // the person texted START; it closes
)

// Words of Said.
const (
	SaidStop  = "stop"
	SaidStart = "start"
)

// Sources of Said, beside the words of an operator.
const (
	SaidByText    = "text"    // the person texted it
	SaidByRefusal = "refused" // the provider refused a text because of it
)

// OptOutInput starts an OptOut. A start by a word carries the person, and what
// the run before had seen. No phone number is in it.
type OptOutInput struct {
	Person string    `json:"person"`
	Seen   []string  `json:"seen,omitempty"`
	Since  time.Time `json:"since,omitzero"` // set when it continues as new
	Source string    `json:"source,omitempty"`
	Ended  int       `json:"ended,omitempty"`
}

// Said is a word of a person about texts. MessageID is that of their text: a
// repeat of one changes nothing. It is empty when there was none.
type Said struct {
	Word      string `json:"word"`
	Source    string `json:"source,omitempty"`
	MessageID string `json:"message_id,omitempty"`
}

// OptOutStatus answers the query status of an OptOut.
type OptOutStatus struct {
	Person string    `json:"person"`
	State  string    `json:"state"`
	Since  time.Time `json:"since"`
	Source string    `json:"source"`
	Ended  int       `json:"ended"` // places in line that it ended
}

// OptOutResult is what the next run must know: the ids of the last texts that
// were heard.
type OptOutResult struct {
	Seen []string `json:"seen,omitempty"`
}
