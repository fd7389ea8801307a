package workflows

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
)

const maxTitle = 200 // characters

// policy opens the SKU at the gate when the book has not, and stores what the
// shop says of it, or its policy. A repeat of what is known changes nothing.
func (s *stock) policy(ctx workflow.Context, req contract.PolicyRequest) (contract.PolicyResult, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	done, err := s.inTurn(ctx)
	if err != nil {
		return contract.PolicyResult{}, err
	}
	defer done()
	if err := s.validatePolicy(req); err != nil { // what came before it may have opened the SKU
		return contract.PolicyResult{}, temporal.NewNonRetryableApplicationError(err.Error(), contract.ErrBadRequest, nil)
	}
	created := !s.book.Opened
	switch {
	case !created && s.known(req):
		return contract.PolicyResult{Version: s.book.Version}, nil
	case len(req.Versions) > 0 && !slices.Contains(req.Versions, s.book.Version):
		return contract.PolicyResult{Version: s.book.Version, Outdated: true}, nil
	}
	if created {
		if _, err := gateStep[activities.Woken](ctx, "open", stockActivities.OpenSKU, activities.SKURef{SKU: s.sku, Epoch: s.book.Epoch}); err != nil {
			return contract.PolicyResult{}, err
		}
	}
	summary := "store title and links"
	if req.Policy != nil {
		summary = "store the policy"
	}
	version := s.book.Version + 1
	out, err := gateStep[activities.Woken](ctx, summary, stockActivities.StoreSettings,
		activities.SettingsInput{SKU: s.sku, About: req.About, Policy: req.Policy, Version: version, Actor: cmp.Or(req.Actor, "shop")})
	if err != nil {
		return contract.PolicyResult{}, err
	}
	s.book.Opened, s.book.Version = true, version
	if req.About != nil {
		s.book.About = *req.About
	}
	if req.Policy != nil {
		s.book.Policy = *req.Policy
	}
	s.dirty = s.dirty || out.Wake
	s.show()
	return contract.PolicyResult{Version: version, Created: created}, nil
}

func (s *stock) validatePolicy(req contract.PolicyRequest) error {
	if req.About != nil {
		if err := validateAbout(*req.About); err != nil {
			return err
		}
	}
	switch {
	case req.Policy == nil && req.About == nil:
		return errors.New("neither about nor policy: there is nothing to change")
	case req.About == nil && !s.book.Opened:
		return fmt.Errorf("SKU %s has not been opened", s.sku)
	case req.Policy != nil:
		return req.Policy.Validate()
	}
	return nil
}

// known says whether all that is asked for stands.
func (s *stock) known(req contract.PolicyRequest) bool {
	return (req.About == nil || sameAbout(s.book.About, *req.About)) && (req.Policy == nil || s.book.Policy.Same(*req.Policy))
}

// restoreSettings gives a gate that has lost its settings, with a Redis that went back
// or that was built anew, all that the book knows of them.
func (s *stock) restoreSettings(ctx workflow.Context) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a turn that was asked for is taken
	done, err := s.inTurn(ctx)
	if err != nil {
		return err
	}
	defer done()
	_, err = gateStep[activities.Woken](ctx, "store the settings again", stockActivities.StoreSettings, activities.SettingsInput{
		SKU: s.sku, About: &s.book.About, Policy: &s.book.Policy, Version: s.book.Version, Paused: &s.book.Paused, Actor: "book",
	})
	if err != nil {
		workflow.GetLogger(ctx).Error("settings not stored again", "sku", s.sku, "error", err)
	}
	return err
}

// pause pauses or resumes the SKU.
func (s *stock) pause(ctx workflow.Context, req contract.PauseRequest) (contract.PauseResult, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	done, err := s.inTurn(ctx)
	if err != nil {
		return contract.PauseResult{}, err
	}
	defer done()
	summary := "resume"
	if req.Paused {
		summary = "pause"
	}
	out, err := gateStep[activities.Woken](ctx, summary, stockActivities.StoreSettings,
		activities.SettingsInput{SKU: s.sku, Paused: &req.Paused, Actor: req.Actor})
	if err != nil {
		return contract.PauseResult{}, err
	}
	s.book.Paused = req.Paused
	s.dirty = s.dirty || out.Wake
	s.show()
	return contract.PauseResult{Paused: s.book.Paused}, nil
}

// inTurn waits until every change that was accepted before has been made: the
// SDK's mutex promises no order, and the last word must win.
func (s *stock) inTurn(ctx workflow.Context) (done func(), err error) {
	turn := s.asked
	s.asked++
	err = workflow.Await(ctx, func() bool { return s.served == turn })
	return func() { s.served++ }, err
}

func validateAbout(a contract.About) error {
	switch n := utf8.RuneCountInString(a.Title); {
	case strings.TrimSpace(a.Title) == "":
		return fmt.Errorf("title is empty: it stands in texts and on pages")
	case n > maxTitle:
		return fmt.Errorf("title has %d characters, at most %d are allowed", n, maxTitle)
	case strings.ContainsFunc(a.Title, unicode.IsControl):
		return fmt.Errorf("title %q contains control characters", a.Title)
	case !isWebURL(a.CheckoutURL):
		return fmt.Errorf("checkout_url %q is not an absolute http or https URL", a.CheckoutURL)
	case a.ImageURL != "" && !isWebURL(a.ImageURL):
		return fmt.Errorf("image_url %q is not an absolute http or https URL", a.ImageURL)
	}
	if a.Price == nil {
		return nil
	}
	if _, err := newMoney(&a.Price.Amount, a.Price.Currency); err != nil {
		return fmt.Errorf("price: %w", err)
	}
	return nil
}

func isWebURL(s string) bool {
	u, err := url.Parse(s) //workflowcheck:ignore it reads a text and nothing else
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

func sameAbout(a, b contract.About) bool {
	samePrice := a.Price == b.Price || (a.Price != nil && b.Price != nil && *a.Price == *b.Price)
	return samePrice && a.Title == b.Title && a.CheckoutURL == b.CheckoutURL && a.ImageURL == b.ImageURL
}
