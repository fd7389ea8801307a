package starter

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"holdfast/contract"
	"holdfast/payment"
)

// configured is what counts for a SKU whose shop wants nothing else.
func (d *Door) configured() contract.Policy {
	whole := func(t time.Duration) *int64 { n := int64(t / time.Second); return &n }
	keep := int64(d.cfg.Missed.Keep)
	return contract.Policy{
		HoldSeconds: whole(d.cfg.Hold.TTL), ExtensionSeconds: whole(d.cfg.Hold.Extension), GraceSeconds: whole(d.cfg.Hold.Grace),
		OfferWindowSeconds: whole(d.cfg.Offer.Window), OfferMaxAgeSeconds: whole(d.cfg.Offer.MaxAge),
		WaitlistTTLSeconds: whole(d.cfg.Waitlist.TTL), MissedKeep: &keep,
	}
}

// effective is what counts for a SKU now, by the gate: one plain read, made for who
// has taken a unit or joins, never for who is refused one.
func (d *Door) effective(ctx context.Context, sku string) (contract.Policy, error) {
	own, err := d.gate.Policy(ctx, sku)
	return own.Policy.Over(d.configured()), err
}

// holdClocks are those of a hold that begins now; of a cart each is the smallest of
// its SKUs.
func (d *Door) holdClocks(ctx context.Context, lines []contract.Line) (contract.HoldSettings, error) {
	var s contract.HoldSettings
	for i, line := range lines {
		p, err := d.effective(ctx, line.SKU)
		if err != nil {
			return s, err
		}
		if i == 0 {
			s = contract.HoldSettings{HoldSeconds: *p.HoldSeconds, ExtensionSeconds: *p.ExtensionSeconds, GraceSeconds: *p.GraceSeconds}
			s.AsksProvider = d.cfg.Payment.Provider == payment.ProviderStripe
		}
		s.HoldSeconds = min(s.HoldSeconds, *p.HoldSeconds)
		s.ExtensionSeconds = min(s.ExtensionSeconds, *p.ExtensionSeconds)
		s.GraceSeconds = min(s.GraceSeconds, *p.GraceSeconds)
	}
	return s, nil
}

// policyBody is a policy with its instant as the API writes it.
type policyBody struct {
	contract.Policy
	EndsAt string `json:"ends_at,omitempty"`
}

func bodyOf(p contract.Policy) policyBody {
	b := policyBody{Policy: p}
	if p.EndsAt != nil {
		b.EndsAt = stamp(*p.EndsAt)
	}
	return b
}

// policyView is a SKU's policy: what the shop has set, and what counts now.
type policyView struct {
	SKU     string `json:"sku"`
	Version int64  `json:"policy_version"`
	policyBody
	Effective policyBody `json:"effective"`
}

func (d *Door) writePolicy(w http.ResponseWriter, sku string, p contract.PolicyOf) error {
	w.Header().Set("ETag", etag(p.Version))
	return writeJSON(w, http.StatusOK, policyView{
		SKU: sku, Version: p.Version, policyBody: bodyOf(p.Policy), Effective: bodyOf(p.Policy.Over(d.configured())),
	})
}

func etag(version int64) string { return fmt.Sprintf(`"%d"`, version) }

// getPolicy asks the gate first: the policy of a closed one may be that of before.
func (d *Door) getPolicy(w http.ResponseWriter, r *http.Request) error {
	sku, err := d.skus.bySKU(r.Context(), r.PathValue("sku"))
	if err != nil {
		return err
	}
	if _, _, err := d.gate.Snapshot(r.Context(), sku); err != nil {
		return err
	}
	p, err := d.gate.Policy(r.Context(), sku)
	if err != nil {
		return err
	}
	return d.writePolicy(w, sku, p)
}

// putPolicy puts a SKU's whole policy in the place of one that its caller has seen.
func (d *Door) putPolicy(w http.ResponseWriter, r *http.Request) error {
	versions, err := ifMatch(r)
	if err != nil {
		return err
	}
	f, err := readObject(w, r, false)
	if err != nil {
		return err
	}
	policy := d.readPolicy(f)
	if err := f.done(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), updateTimeout)
	defer cancel()
	req := contract.PolicyRequest{Policy: &policy, Versions: versions, Actor: callerOf(ctx)}
	sku, id, err := d.updateOf(ctx, r, req)
	if err != nil {
		return err
	}
	out, err := d.launcher.Policy(ctx, sku, id, req)
	if err != nil {
		return err
	}
	if out.Outdated {
		w.Header().Set("ETag", etag(out.Version))
		return problem(preconditionFailed, "the policy of SKU %s is at version %d and If-Match names another; nothing was changed: read it again, and send what you want of it with its ETag", sku, out.Version)
	}
	return d.writePolicy(w, sku, contract.PolicyOf{Policy: policy, Version: out.Version})
}

// readPolicy reads a whole policy; what is missing or null falls back to the
// configuration.
func (d *Door) readPolicy(f *fields) contract.Policy {
	var p contract.Policy
	for _, n := range contract.PolicyNumbers {
		*n.In(&p) = f.optionalInteger(n.Name, n.Least, n.Most)
	}
	if ends := f.instant("ends_at"); ends != nil {
		if ends.UnixMilli() < 1 || ends.After(contract.LastEnd) {
			f.complain("ends_at", "must be after 1970 and before the year 10000")
		}
		ends := ends.Truncate(time.Millisecond)
		p.EndsAt = &ends
	}
	all := p.Over(d.configured())
	if window, age := *all.OfferWindowSeconds, *all.OfferMaxAgeSeconds; window > age {
		name := "offer_window_seconds"
		if p.OfferWindowSeconds == nil {
			name = "offer_max_age_seconds"
		}
		f.complain(name, "an offer may be pressed for %d seconds (offer_window_seconds) and lives for %d (offer_max_age_seconds): the first must not be more", window, age)
	}
	return p
}

// ifMatch reads the versions that the caller names, quoted or bare; none for "*".
// A change of a policy that nobody has looked at would silently undo another's.
func ifMatch(r *http.Request) ([]int64, error) {
	raw := strings.TrimSpace(strings.Join(r.Header.Values("If-Match"), ","))
	switch raw {
	case "":
		return nil, problem(preconditionFailed, "send the header If-Match with the ETag of GET …/policy, or with * to replace the policy whatever it is; nothing was changed")
	case "*":
		return nil, nil
	}
	versions := []int64{}
	for tag := range strings.SplitSeq(raw, ",") {
		tag = strings.TrimSpace(tag)
		if bare, ok := strings.CutPrefix(tag, `"`); ok {
			tag = strings.TrimSuffix(bare, `"`)
		}
		if n, err := strconv.ParseInt(tag, 10, 64); err == nil && n > 0 { // else it is no version of ours and matches none
			versions = append(versions, n)
		}
	}
	if len(versions) == 0 {
		return nil, problem(preconditionFailed, "If-Match %.60q names no version of a policy: send the ETag of GET …/policy, as in \"3\"; nothing was changed", raw)
	}
	return versions, nil
}
