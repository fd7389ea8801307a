package starter

import (
	"errors"
	"net/http"
	"net/url"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/launch"
	"holdfast/sms"
)

// newTwilioVerifier answers nil, which verifies nothing, when Twilio does not
// send the texts.
func newTwilioVerifier(cfg *config.Config) (*sms.Verifier, error) {
	if cfg.SMS.Provider != "twilio" {
		return nil, nil
	}
	return sms.NewVerifier(cfg.SMS.Twilio.AuthToken, cfg.HTTP.PublicURL)
}

// twilioForm reads a form that Twilio posted and signed.
func (d *Door) twilioForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	raw, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	if !d.twilio.Verify(r.RequestURI, raw, r.Header.Get(sms.SignatureHeader)) {
		return nil, problem(signatureInvalid, "%s must sign this form for %s and the target of the request, with the token of the account", sms.SignatureHeader, d.cfg.HTTP.PublicURL)
	}
	form, err := url.ParseQuery(string(raw))
	if err != nil || !isMedia(r, "application/x-www-form-urlencoded") {
		return nil, problem(unsupportedMediaType, "a form is expected, not %.80q", r.Header.Get("Content-Type"))
	}
	return form, nil
}

// postTextStatus takes Twilio's word on how far a text has come and hands the
// entry what it needs to know: each signal is kept in its history.
func (d *Door) postTextStatus(w http.ResponseWriter, r *http.Request) error {
	form, err := d.twilioForm(w, r)
	if err != nil {
		return err
	}
	u, err := sms.ParseStatus(form)
	if err != nil {
		return problem(validationFailed, "%s", err)
	}
	entry, hold := r.URL.Query().Get(sms.CallbackEntry), r.URL.Query().Get(sms.CallbackHold)
	sku, err := d.skus.byEntry(r.Context(), entry)
	if err != nil {
		return err
	}
	if d.onTextState != nil {
		d.onTextState(u.State)
	}
	status := contract.TextStatus{TextID: u.TextID, HoldID: hold, Status: string(u.State), ErrorCode: u.Code}
	switch {
	case u.State.Lost():
		status.Class, status.OptedOut = string(sms.ClassOf(u.Code, 0)), sms.OptedOut(u.Code)
		d.log.Warn("a text was lost on its way", "entry", entry, "hold", hold, "state", u.State, "code", u.Code, "class", status.Class)
	case hold != "" && (u.State == sms.StateSent || u.State == sms.StateDelivered):
	default:
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if status.OptedOut {
		if err := d.refusedFor(r.Context(), sku, entry); err != nil {
			return err
		}
	}
	if !d.isNews(r.Context(), entry, status) {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if err := d.launcher.Signal(r.Context(), entry, contract.SignalTextStatus, status); err != nil && !errors.Is(err, launch.ErrNoOwner) {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
