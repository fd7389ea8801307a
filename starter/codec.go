package starter

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/codec"
)

// maxPayloads is the largest body of the codec endpoint: what one answer of
// Temporal may carry, in base64.
const maxPayloads = 8 << 20

type translation func([]*commonpb.Payload) ([]*commonpb.Payload, error)

// postCodec encrypts or decrypts payloads for Temporal's UI and CLI, in the form
// that both ask for: {payloads: [{metadata, data}]} with base64 values.
func (d *Door) postCodec(translate translation) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		trusted := d.allowUI(w, r)
		if !trusted {
			if _, err := d.caller(r); err != nil {
				return err
			}
		}
		in, err := readPayloads(w, r)
		if err != nil {
			return err
		}
		out, err := translate(in.GetPayloads())
		var unknown *codec.UnknownKeyError
		switch {
		case errors.As(err, &unknown), errors.Is(err, codec.ErrAltered):
			return problem(validationFailed, "%s", err.Error())
		case err != nil:
			return err
		}
		body, err := protojson.Marshal(&commonpb.Payloads{Payloads: out})
		if err != nil {
			return fmt.Errorf("write payloads: %w", err)
		}
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(body) // the client has gone: nobody left to tell
		return nil
	}
}

func readPayloads(w http.ResponseWriter, r *http.Request) (*commonpb.Payloads, error) {
	if err := isJSON(r); err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPayloads))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, problem(bodyTooLarge, "payloads may have at most %d bytes together", maxPayloads)
	case err != nil:
		return nil, problem(malformedBody, "the body ended before it was complete")
	}
	var in commonpb.Payloads
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(raw, &in); err != nil {
		return nil, problem(malformedBody, "the body is not {\"payloads\": [{\"metadata\": {…}, \"data\": …}]} with base64 values")
	}
	return &in, nil
}

// optionsCodec answers a browser that asks whether a page may send its request.
func (d *Door) optionsCodec(w http.ResponseWriter, r *http.Request) error {
	if d.allowUI(w, r) {
		h := w.Header()
		h.Set("Access-Control-Allow-Methods", "POST")
		h.Set("Access-Control-Allow-Headers", "Authorization, Authorization-Extras, Content-Type, X-Namespace")
		h.Set("Access-Control-Max-Age", "600")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// allowUI says whether a page of Temporal's UI asks, and lets it read the answer.
// The UI has no key of ours to send, and a browser does not let another page
// claim its origin.
func (d *Door) allowUI(w http.ResponseWriter, r *http.Request) bool {
	w.Header().Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if !slices.Contains(d.cfg.Temporal.UIOrigins, origin) {
		return false
	}
	w.Header().Set("Access-Control-Allow-Origin", origin)
	return true
}
