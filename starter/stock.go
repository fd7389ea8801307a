package starter

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"holdfast/contract"
	"holdfast/redis"
)

// stockView is a SKU as the shop sees it. A closed SKU shows only its state.
type stockView struct {
	SKU        string            `json:"sku"`
	Title      string            `json:"title,omitempty"`
	State      contract.SKUState `json:"state"`
	OnHand     int64             `json:"on_hand"`
	Held       int64             `json:"held"`
	Offered    int64             `json:"offered"`
	Available  int64             `json:"available"`
	OpenToAll  int64             `json:"open_to_all"`
	Sold       int64             `json:"sold"`
	Returned   int64             `json:"returned"`
	Waiting    int64             `json:"waiting"`
	Shortfall  int64             `json:"shortfall"`
	Rings      []string          `json:"rings,omitempty"` // wires of the tripwire
	Paused     bool              `json:"paused"`
	Generation int64             `json:"generation"`
	Version    int64             `json:"policy_version"`
	AsOf       string            `json:"as_of"`
}

type closedView struct {
	SKU   string            `json:"sku"`
	State contract.SKUState `json:"state"`
	AsOf  string            `json:"as_of"`
}

func stockOf(c redis.Counters, about contract.About, rings []contract.Ring) stockView {
	return stockView{
		SKU: c.SKU, Title: about.Title, State: c.State, OnHand: c.OnHand, Held: c.Held, Offered: c.Offered,
		Available: c.Available, OpenToAll: c.OpenToAll, Sold: c.Sold, Returned: c.Returned, Waiting: c.Waiting,
		Shortfall: c.Shortfall, Rings: contract.WiresOf(rings), Paused: c.Paused, Generation: c.Generation, Version: c.PolicyVersion, AsOf: stamp(c.AsOf),
	}
}

// viewStock is the SKU's view, or its closedView: a closed gate has no numbers
// to show.
func (d *Door) viewStock(ctx context.Context, sku string) (any, error) {
	c, about, err := d.gate.Snapshot(ctx, sku)
	var closed *redis.ClosedError
	switch {
	case errors.As(err, &closed):
		d.metClosed(closed)
		return closedView{SKU: sku, State: contract.SKUClosed, AsOf: stamp(time.Now())}, nil
	case err != nil:
		return nil, err
	}
	rings, err := d.gate.Rings(ctx, c)
	if err != nil {
		return nil, err
	}
	return stockOf(c, about, rings), nil
}

const updateTimeout = workerWait // of a workflow's answer

// putStock opens a SKU or changes what the shop says of it.
func (d *Door) putStock(w http.ResponseWriter, r *http.Request) error {
	f, err := readObject(w, r, false)
	if err != nil {
		return err
	}
	about := contract.About{Title: f.text("title", 200), CheckoutURL: f.text("checkout_url", 2000), Price: f.price("price")}
	if about.CheckoutURL != "" && !isCheckoutURL(about.CheckoutURL) {
		f.complain("checkout_url", "must be an absolute http or https URL; {hold_id}, {entry_id}, {expires_at} and {sig} may stand after the host")
	}
	if image, given := f.optionalText("image_url", 2000); given && image != "" {
		if u, err := url.Parse(image); err != nil || !isWeb(u) || strings.ContainsAny(image, " ;,") {
			f.complain("image_url", "must be an absolute http or https URL")
		}
		about.ImageURL = image
	}
	if err := f.done(); err != nil {
		return err
	}
	sku := r.PathValue("sku")
	if !contract.ValidSKU(sku) {
		return problem(validationFailed, "a SKU has 1 to 64 of A-Z, a-z, 0-9, \".\", \"_\" and \"-\"; %.80q does not", sku)
	}
	ctx, cancel := context.WithTimeout(r.Context(), updateTimeout)
	defer cancel()
	// Only the book registers it: what Temporal did not take must leave no SKU
	// that nobody can open.
	owner, _, err := d.gate.LookupSKU(ctx, contract.SKUNumber(sku))
	if err != nil {
		return err
	}
	if owner != "" && owner != sku {
		return problem(validationFailed, "SKU %s has the same number as SKU %s, so their ids could not be told apart; choose another name", sku, owner)
	}
	req := contract.PolicyRequest{About: &about, Actor: callerOf(ctx)}
	id, err := d.updateID(ctx, r, sku, req)
	if err != nil {
		return err
	}
	out, err := d.launcher.Policy(ctx, sku, id, req)
	if err != nil {
		return err
	}
	view, err := d.viewStock(ctx, sku)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if out.Created {
		status = http.StatusCreated
		w.Header().Set("Location", "/v1/stock/"+sku)
	}
	return writeJSON(w, status, view)
}

var checkoutPlaceholder = regexp.MustCompile(`\{(hold_id|entry_id|expires_at|sig)\}`)

// webHost is a host name or address that means the same to every reader; the
// pages' content security policy names it.
var webHost = regexp.MustCompile(`^([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

func isWeb(u *url.URL) bool {
	return (u.Scheme == "https" || u.Scheme == "http") && webHost.MatchString(u.Host) && u.User == nil
}

// isCheckoutURL wants a fixed host: the page that leads there names it in its
// content security policy.
func isCheckoutURL(raw string) bool {
	filled := checkoutPlaceholder.ReplaceAllString(raw, "x")
	u, err := url.Parse(filled)
	if err != nil || !isWeb(u) || strings.ContainsAny(filled, "{} ") {
		return false
	}
	return strings.HasPrefix(raw, u.Scheme+"://"+u.Host)
}

// updateOf reads the SKU of the path, which must exist, and names an update of its book.
func (d *Door) updateOf(ctx context.Context, r *http.Request, request any) (sku, id string, err error) {
	if sku, err = d.skus.bySKU(ctx, r.PathValue("sku")); err != nil {
		return "", "", err
	}
	id, err = d.updateID(ctx, r, sku, request)
	return sku, id, err
}

// updateID names an update at a workflow: the same for the same Idempotency-Key
// of a caller, who may use it for this one request only; fresh without one.
func (d *Door) updateID(ctx context.Context, r *http.Request, sku string, request any) (string, error) {
	key, err := idempotencyKey(r)
	if err != nil {
		return "", err
	}
	if key == "" {
		return rand.Text(), nil
	}
	_, err = d.claim(ctx, "stock", key, "", []any{sku, request}, claimKeep)
	return digest(callerOf(ctx), key), err
}

func (d *Door) getStock(w http.ResponseWriter, r *http.Request) error {
	sku, err := d.skus.bySKU(r.Context(), r.PathValue("sku"))
	if err != nil {
		return err
	}
	view, err := d.viewStock(r.Context(), sku)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, view)
}

// listStock lists the SKUs by name; the cursor is the last name.
func (d *Door) listStock(w http.ResponseWriter, r *http.Request) error {
	q, err := readPage(r, 100)
	if err != nil {
		return err
	}
	if q.cursor != "" && !contract.ValidSKU(q.cursor) {
		return badQuery("cursor", "is not one of ours")
	}
	skus, err := d.skus.all(r.Context())
	if err != nil {
		return err
	}
	list := page{Data: []any{}}
	for _, sku := range skus {
		if sku <= q.cursor {
			continue
		}
		if len(list.Data) == q.limit {
			list.NextCursor = &q.last
			break
		}
		view, err := d.viewStock(r.Context(), sku)
		if err != nil {
			return err
		}
		list.Data = append(list.Data, view)
		q.last = sku
	}
	return writeJSON(w, http.StatusOK, list)
}

func (d *Door) pauseStock(pausing bool) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		f, err := readObject(w, r, true)
		if err != nil {
			return err
		}
		if err := f.done(); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(r.Context(), updateTimeout)
		defer cancel()
		req := contract.PauseRequest{Paused: pausing, Actor: callerOf(ctx)}
		sku, id, err := d.updateOf(ctx, r, req)
		if err != nil {
			return err
		}
		if _, err := d.launcher.Pause(ctx, sku, id, req); err != nil {
			return err
		}
		view, err := d.viewStock(ctx, sku)
		if err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, view)
	}
}

type publicView struct {
	SKU       string            `json:"sku"`
	State     contract.SKUState `json:"state"`
	OpenToAll int64             `json:"open_to_all"`
}

// getPublic is for a product page's script, from any origin.
func (d *Door) getPublic(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	sku, err := d.skus.bySKU(r.Context(), r.PathValue("sku"))
	if err != nil {
		return err
	}
	c, _, err := d.gate.Snapshot(r.Context(), sku)
	var closed *redis.ClosedError
	switch {
	case errors.As(err, &closed):
		d.metClosed(closed)
		return tryLater(retryClosed, "SKU %s is being checked after a restart of its store", sku)
	case err != nil:
		return err
	}
	return writeJSON(w, http.StatusOK, publicView{SKU: sku, State: c.State, OpenToAll: c.OpenToAll})
}
