package starter

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"holdfast/contract"
	"holdfast/sms"
)

// postInbound takes a text that a person sent to our number. Twilio answers the
// keywords itself, so its answer is empty; every other text is passed over.
func (d *Door) postInbound(w http.ResponseWriter, r *http.Request) error {
	form, err := d.twilioForm(w, r)
	if err != nil {
		return err
	}
	in := sms.ParseInbound(form)
	said := contract.Said{Source: contract.SaidByText, MessageID: in.ID}
	switch in.Keyword {
	case sms.KeywordStop:
		said.Word = contract.SaidStop
	case sms.KeywordStart:
		said.Word = contract.SaidStart
	}
	if said.Word != "" {
		if err := d.hear(r.Context(), in.From, said); err != nil {
			return err
		}
	}
	w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	_, err = w.Write([]byte(sms.EmptyTwiML))
	return err
}

// hear passes a word on to the person's OptOut. A sender that is no number that can
// join, such as a short code, has no places.
func (d *Door) hear(ctx context.Context, from string, said contract.Said) error {
	e164, ok := normalisePhone(from, d.cfg.Phone.DefaultRegion)
	if !ok || !strings.HasPrefix(from, "+") {
		d.log.Warn("a keyword from what is no phone number is passed over", "word", said.Word)
		return nil
	}
	person := d.keys.PersonOfPhone(e164)
	if err := d.launcher.Said(ctx, person, said); err != nil {
		d.log.Error("the word of a person about texts is not recorded", "word", said.Word, "person", person, "error", err)
		return tryLater(retrySoon, "the word is not recorded; send it again")
	}
	d.log.Info("a person said whether they want texts", "word", said.Word, "person", person)
	return nil
}

// refusedFor records that the provider refused a text to an entry's person because
// of a STOP. An entry that is gone has nobody to protect.
func (d *Door) refusedFor(ctx context.Context, sku, entryID string) error {
	e, ok, err := d.gate.ReadEntry(ctx, sku, entryID)
	if err != nil || !ok {
		return err
	}
	return d.launcher.Said(ctx, e.Person, contract.Said{Word: contract.SaidStop, Source: contract.SaidByRefusal})
}

const (
	// A join does not wait for Temporal. It looks when that is quick: what it does
	// not see is seen before the text.
	optOutLook  = 250 * time.Millisecond
	optOutLooks = 16              // at once
	optOutPause = 2 * time.Second // after a look that failed
)

// optOutLooker looks for opt-outs, as long as that costs little.
type optOutLooker struct {
	ask  func(ctx context.Context, person string) (bool, error)
	room chan struct{}

	mu    sync.Mutex
	until time.Time // no look before
}

func newOptOutLooker(ask func(ctx context.Context, person string) (bool, error)) *optOutLooker {
	return &optOutLooker{ask: ask, room: make(chan struct{}, optOutLooks)}
}

// knows says that a person has opted out; false also when that could not be found
// out soon.
func (l *optOutLooker) knows(ctx context.Context, person string) bool {
	l.mu.Lock()
	rests := time.Now().Before(l.until)
	l.mu.Unlock()
	if rests {
		return false
	}
	select {
	case l.room <- struct{}{}:
	default:
		return false
	}
	defer func() { <-l.room }()
	look, cancel := context.WithTimeout(ctx, optOutLook)
	defer cancel()
	out, err := l.ask(look, person)
	if err != nil && ctx.Err() == nil {
		l.mu.Lock()
		l.until = time.Now().Add(optOutPause)
		l.mu.Unlock()
	}
	return err == nil && out
}

// refuseOptedOut says why a person who has opted out does not join. What would refuse
// anybody comes first: a stranger must not learn from the difference whose number
// it is.
func (d *Door) refuseOptedOut(ctx context.Context, sku string) error {
	c, _, err := d.gate.Snapshot(ctx, sku)
	switch {
	case err != nil:
		return err
	case c.Ended:
		return errSaleEnded(sku)
	}
	return problem(optedOut, "after a STOP no texts may go to this number, so nothing was recorded; START, texted to %s, allows them again, then join", d.startNumber())
}

// unsaid drops the refusal of who has opted out: only the shop's server and whoever
// holds the person's link may know of it.
func unsaid(err error) error {
	var p *Problem
	if errors.As(err, &p) && p.Code == optedOut {
		return nil
	}
	return err
}

// startsAt is the number that START is texted to, "" when a messaging service or a
// sender id stands for many.
func (d *Door) startsAt() string {
	if from := d.cfg.SMS.Twilio.From; d.cfg.SMS.Provider == "twilio" && strings.HasPrefix(from, "+") {
		return from
	}
	return ""
}

func (d *Door) startNumber() string {
	return cmp.Or(d.startsAt(), "the number that our texts come from")
}
