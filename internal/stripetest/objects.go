package stripetest

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Intent makes a PaymentIntent that nobody has paid. Without a hold id it has
// no metadata.
func (s *Server) Intent(holdID string, amount int64, currency string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.id("pi")
	s.intents[id] = Object{
		"id": id, "object": "payment_intent", "amount": amount, "amount_received": 0, "currency": currency,
		"status": "requires_payment_method", "metadata": metadata(holdID), "latest_charge": nil, "livemode": false,
	}
	return id
}

// Session makes an open Checkout Session. intent may be empty, as it is until
// somebody pays.
func (s *Server) Session(holdID, intent string, amount int64, currency string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.id("cs_test")
	o := Object{
		"id": id, "object": "checkout.session", "mode": "payment", "status": "open", "payment_status": "unpaid",
		"payment_intent": nil, "amount_total": amount, "currency": currency, "metadata": metadata(holdID), "livemode": false,
	}
	if intent != "" {
		o["payment_intent"] = intent
	}
	s.sessions[id] = o
	return id
}

func metadata(holdID string) Object {
	if holdID == "" {
		return Object{}
	}
	return Object{"hold_id": holdID}
}

// Set changes fields of an object.
func (s *Server) Set(id string, fields Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.object(id), fields)
}

// Get is a copy of an object.
func (s *Server) Get(id string) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.object(id))
}

func (s *Server) object(id string) Object {
	for _, all := range []map[string]Object{s.intents, s.charges, s.sessions, s.refunds} {
		if o, ok := all[id]; ok {
			return o
		}
	}
	panic("stripetest: no object " + id)
}

// Pay makes an intent succeed.
func (s *Server) Pay(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pi := s.intents[id]
	charge := s.id("ch")
	s.charges[charge] = Object{
		"id": charge, "object": "charge", "amount": pi["amount"], "amount_refunded": int64(0), "refunded": false, "payment_intent": id,
	}
	pi["status"], pi["amount_received"], pi["latest_charge"] = "succeeded", pi["amount"], charge
}

// NewRefunds sets the status that refunds are made with, at first "succeeded".
func (s *Server) NewRefunds(status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// RefundByHand pays part of an intent back as a person does in the Dashboard.
func (s *Server) RefundByHand(intent string, amount int64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.payBack(intent, amount, Object{})["id"].(string)
}

// EndRefund ends a refund; what failed is not paid back.
func (s *Server) EndRefund(id, status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.refunds[id]
	r["status"] = status
	if status == "failed" {
		r["failure_reason"] = "lost_or_stolen_card"
		charge := s.charges[r["charge"].(string)]
		charge["amount_refunded"] = charge["amount_refunded"].(int64) - r["amount"].(int64)
		charge["refunded"] = false
	}
}

// Refunds are the ids of all refunds, oldest first.
func (s *Server) Refunds() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.order)
}

func (s *Server) payBack(intent string, amount int64, meta Object) Object {
	charge := s.charges[s.intents[intent]["latest_charge"].(string)]
	id := s.id("re")
	s.refunds[id] = Object{
		"id": id, "object": "refund", "amount": amount, "currency": s.intents[intent]["currency"], "status": s.status,
		"payment_intent": intent, "charge": charge["id"], "metadata": meta, "failure_reason": nil,
	}
	s.order = append(s.order, id)
	charge["amount_refunded"] = charge["amount_refunded"].(int64) + amount
	charge["refunded"] = charge["amount_refunded"] == charge["amount"]
	return s.refunds[id]
}

func (s *Server) refund(form url.Values) (int, Object) {
	pi, ok := s.intents[form.Get("payment_intent")]
	if !ok {
		return missing(form.Get("payment_intent"))
	}
	if pi["status"] != "succeeded" {
		return http.StatusBadRequest, failure("invalid_request_error", "", "This PaymentIntent does not have a successful charge to refund.")
	}
	charge := s.charges[pi["latest_charge"].(string)]
	if charge["disputed"] == true {
		return http.StatusBadRequest, failure("invalid_request_error", "charge_disputed", "The charge has been charged back; cannot issue a refund.")
	}
	rest := charge["amount"].(int64) - charge["amount_refunded"].(int64)
	if rest == 0 {
		return http.StatusBadRequest, failure("invalid_request_error", "charge_already_refunded", "Charge has already been refunded.")
	}
	meta := Object{}
	for _, name := range []string{"hold_id", "payment_id"} {
		meta[name] = form.Get("metadata[" + name + "]")
	}
	return http.StatusOK, s.payBack(pi["id"].(string), rest, meta)
}

// cancelable are the states of an intent that can be cancelled.
var cancelable = []any{"requires_payment_method", "requires_capture", "requires_confirmation", "requires_action"}

func (s *Server) cancelIntent(id string, form url.Values) (int, Object) {
	pi, ok := s.intents[id]
	if !ok {
		return missing(id)
	}
	for _, cs := range s.sessions {
		if cs["payment_intent"] == id && cs["status"] == "open" {
			return http.StatusBadRequest, failure("invalid_request_error", "payment_intent_unexpected_state",
				"You cannot cancel this PaymentIntent because it was created by Checkout. Try expiring the Checkout Session instead.")
		}
	}
	if !slices.Contains(cancelable, pi["status"]) {
		return http.StatusBadRequest, failure("invalid_request_error", "payment_intent_unexpected_state",
			"You cannot cancel this PaymentIntent because it has a status of "+pi["status"].(string)+".")
	}
	pi["status"], pi["cancellation_reason"] = "canceled", form.Get("cancellation_reason")
	return http.StatusOK, pi
}

func (s *Server) expireSession(id string) (int, Object) {
	cs, ok := s.sessions[id]
	if !ok {
		return missing(id)
	}
	if cs["status"] != "open" {
		return http.StatusBadRequest, failure("invalid_request_error", "", "Only Checkout Sessions with a status in [\"open\"] can be expired.")
	}
	cs["status"] = "expired"
	return http.StatusOK, cs
}

func (s *Server) one(all map[string]Object, id string, form url.Values) (int, Object) {
	o, ok := all[id]
	if !ok {
		return missing(id)
	}
	names := []string{}
	for param, values := range form {
		if strings.HasPrefix(param, "expand[") {
			names = append(names, values...)
		}
	}
	return http.StatusOK, s.expanded(o, names)
}

// expanded puts objects in the place of their ids.
func (s *Server) expanded(o Object, names []string) Object {
	o = maps.Clone(o)
	for _, name := range names {
		if id, ok := o[name].(string); ok {
			o[name] = maps.Clone(s.object(id))
		}
	}
	return o
}

// list answers one page, newest first, of those whose fields are as asked.
func (s *Server) list(all map[string]Object, order []string, form url.Values) (int, Object) {
	if order == nil {
		order = slices.Sorted(maps.Keys(all))
	}
	data := []Object{}
	for _, id := range slices.Backward(order) {
		if all[id]["payment_intent"] == form.Get("payment_intent") {
			data = append(data, all[id])
		}
	}
	return http.StatusOK, Object{"object": "list", "data": data, "has_more": false, "url": "/v1"}
}
