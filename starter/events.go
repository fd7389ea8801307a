package starter

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	"holdfast/contract"
	"holdfast/events"
	"holdfast/launch"
)

// tellingView is an Event: something that the shop is to be told of. When its
// workflow does not answer, only its id is known, and the state that was asked for.
type tellingView struct {
	EventID    string `json:"event_id"`
	Type       string `json:"type,omitempty"`
	Subject    string `json:"subject,omitempty"`
	Sequence   int64  `json:"sequence,omitempty"`
	State      string `json:"state,omitempty"`
	Reason     string `json:"reason,omitempty"`
	HappenedAt string `json:"happened_at,omitempty"`
	ParkedAt   string `json:"parked_at,omitempty"`
}

func viewTelling(s contract.EventStatus) tellingView {
	v := tellingView{
		EventID: s.EventID, Type: s.Type, Subject: s.Subject, Sequence: s.Sequence, State: s.State, Reason: s.Reason,
		HappenedAt: stampIf(s.At),
	}
	if s.ParkedAt != nil {
		v.ParkedAt = stamp(*s.ParkedAt)
	}
	return v
}

// listEvents lists events that the shop has not taken, newest first. Temporal's
// visibility finds them; their workflows say what they are now.
func (d *Door) listEvents(w http.ResponseWriter, r *http.Request) error {
	q, err := readPage(r, 50)
	if err != nil {
		return err
	}
	cursor, err := d.decodeCursor(listOfEvents, q.cursor)
	if err != nil {
		return err
	}
	state := r.URL.Query().Get("state")
	if state != "" && state != contract.EventSending && state != contract.EventParked {
		return badQuery("state", "must be sending or parked")
	}
	ctx, cancel := context.WithTimeout(r.Context(), updateTimeout)
	defer cancel()
	ids, next, err := d.directory.Events(ctx, state, q.limit, cursor)
	if err != nil {
		return err
	}
	details, cancel := context.WithTimeout(ctx, detailTimeout)
	defer cancel()
	data, err := readAll(ctx, ids, func(_ context.Context, id string) (*tellingView, error) {
		return d.listedEvent(details, id, state), nil
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, page{Data: data, NextCursor: d.encodeCursor(listOfEvents, next)})
}

// listedEvent reads one event of a list; nil when it is not any more what
// visibility still says.
func (d *Door) listedEvent(ctx context.Context, id, state string) *tellingView {
	s, err := d.eventStatus(ctx, id)
	if err != nil {
		d.log.Warn("an event did not say what it is", "error", err)
		return &tellingView{EventID: id, State: state}
	}
	open := s.State == contract.EventSending || s.State == contract.EventParked
	if !open || state != "" && s.State != state {
		return nil
	}
	v := viewTelling(s)
	return &v
}

func (d *Door) eventStatus(ctx context.Context, id string) (s contract.EventStatus, err error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	err = d.launcher.Status(ctx, id, &s)
	return s, err
}

// postEventRetry has an event delivered afresh, at once.
func (d *Door) postEventRetry(w http.ResponseWriter, r *http.Request) error {
	f, err := readObject(w, r, true)
	if err != nil {
		return err
	}
	if err := f.done(); err != nil {
		return err
	}
	id, actor := r.PathValue("event_id"), callerOf(r.Context())
	// What a person did happens even when the client has gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), updateTimeout)
	defer cancel()
	view, err := d.retryEvent(ctx, id, actor)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, view)
}

// retryEvent tells the Event and waits a little until it has begun. One that the
// shop has, or that was given up, is shown as it is.
func (d *Door) retryEvent(ctx context.Context, id, actor string) (tellingView, error) {
	before, err := d.readEvent(ctx, id)
	if err != nil {
		return tellingView{}, err
	}
	err = d.launcher.Signal(ctx, id, contract.SignalRetry, contract.EventMove{Actor: actor})
	if err != nil && !errors.Is(err, launch.ErrNoOwner) {
		return tellingView{}, err
	}
	var now tellingView
	heard := false
	err = watch(ctx, time.Now().Add(tellWait), func() (_ bool, err error) {
		now, err = d.readEvent(ctx, id)
		heard = err == nil && (now.State != contract.EventParked || now.ParkedAt != before.ParkedAt)
		return heard, err
	})
	if err == nil && !heard {
		err = tryLater(retrySoon, "%s was told and is still parked; repeat the request to see it tried", id)
	}
	return now, err
}

// readEvent reads the Event that a path names, as it is now.
func (d *Door) readEvent(ctx context.Context, id string) (tellingView, error) {
	unknown := problem(unknownEvent, "there is no event %.60q; GET /v1/events lists those that the shop has not taken", id)
	if !contract.ValidEventID(id) {
		return tellingView{}, unknown
	}
	s, err := d.eventStatus(ctx, id)
	if errors.Is(err, launch.ErrNoOwner) {
		return tellingView{}, unknown
	}
	return viewTelling(s), err
}

// testTimeout is less than the command line waits for the door.
const testTimeout = 12 * time.Second

// testView is what the endpoint made of a test event. Do is for a person.
type testView struct {
	EventID      string `json:"event_id"`
	Acknowledged bool   `json:"acknowledged"`
	Status       int    `json:"status,omitempty"`
	Answer       string `json:"answer,omitempty"`
	Reason       string `json:"reason,omitempty"`
	Do           string `json:"do,omitempty"`
}

// testNote is the data of the event holdfast.test.
type testNote struct {
	Note string `json:"note"`
}

// postTest sends one event to the shop's endpoint, once. Nobody owns it.
func (d *Door) postTest(w http.ResponseWriter, r *http.Request) error {
	f, err := readObject(w, r, true)
	if err != nil {
		return err
	}
	if err := f.done(); err != nil {
		return err
	}
	if d.shop == nil {
		return problem(validationFailed, "the shop has no endpoint: set events.url and events.secrets, and start worker and door again")
	}
	ctx, cancel := context.WithTimeout(r.Context(), testTimeout)
	defer cancel()
	now := time.Now()
	v := testView{EventID: contract.EventID(rand.Text(), contract.EventTest, ""), Acknowledged: true}
	err = d.shop.Send(ctx, events.Event{
		ID: v.EventID, Type: contract.EventTest, Time: now, Sequence: now.UnixMicro(),
		Data: testNote{Note: "sent by a person to test this endpoint; nothing has happened"},
	})
	var refused *events.Error
	if errors.As(err, &refused) {
		v.Acknowledged, v.Status, v.Answer, v.Reason, v.Do = false, refused.Status, refused.Answer, refused.Reason, refused.Advice()
	} else if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, v)
}
