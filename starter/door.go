package starter

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/codec"
	"holdfast/config"
	"holdfast/connect"
	"holdfast/events"
	"holdfast/keys"
	"holdfast/payment"
	"holdfast/sms"
)

// Deps are what a Door works with.
type Deps struct {
	Config    *config.Config
	Keys      *keys.Ring
	Gate      Gate
	Launcher  Launcher
	Directory Directory
	Payments  payment.Port // with payment.provider stripe it reads Stripe's webhooks as well
	Limits    Limiter
	Metrics   http.Handler // nil answers 404
	Log       *slog.Logger
	// OnTextState is told of each callback about a text; may be nil.
	OnTextState func(state sms.State)
}

// Door answers HTTP. It is safe for concurrent use.
type Door struct {
	cfg       *config.Config
	keys      *keys.Ring
	gate      Gate
	launcher  Launcher
	directory Directory
	payments  payment.Port
	stripe    stripeReader // nil without Stripe
	limits    Limiter
	proxies   []netip.Prefix // whose X-Forwarded-For is believed
	metrics   http.Handler
	log       *slog.Logger

	apiKeys   []apiKey
	verifiers []verifier
	twilio    *sms.Verifier // nil without Twilio
	optOuts   *optOutLooker

	onTextState func(state sms.State)
	codec       *codec.Codec
	shop        *events.Sender // nil when the shop has no endpoint for events
	skus        *routing
	chores      *chores
	starts      *pool
	backlog     *backlog
	pages       *languages
	health      healthCache
	reports     reportCache
	began       time.Time

	draining atomic.Bool
	moving   chan struct{} // a place for each request that waits for a hold to move
	behind   sync.Map      // SKUs whose stock events may have to wait, see roomInBook
}

// New makes a door. Close ends what it does in the background.
func New(deps Deps) (*Door, error) {
	verifiers, err := newVerifiers(deps.Config.Secrets.Inventory)
	if err != nil {
		return nil, err
	}
	twilio, err := newTwilioVerifier(deps.Config)
	if err != nil {
		return nil, err
	}
	payloads, err := connect.Codec(deps.Config)
	if err != nil {
		return nil, err
	}
	shop, err := connect.Events(deps.Config)
	if err != nil {
		return nil, err
	}
	pages, err := parsePages(deps.Config.Shop.Locale)
	if err != nil {
		return nil, err
	}
	if deps.Metrics == nil {
		deps.Metrics = http.NotFoundHandler()
	}
	d := &Door{
		metrics: deps.Metrics, cfg: deps.Config, keys: deps.Keys, gate: deps.Gate, launcher: deps.Launcher,
		directory: deps.Directory, payments: deps.Payments, limits: deps.Limits, log: deps.Log,
		apiKeys:   apiKeys(deps.Config.Secrets.APIKeys),
		verifiers: verifiers,
		twilio:    twilio,
		codec:     payloads,
		shop:      shop,
		chores:    newChores(deps.Log),
		starts:    newPool(deps.Config.Join.Workers),
		backlog:   newBacklog(deps.Config.Join.MaxBacklog),
		pages:     pages,
		moving:    make(chan struct{}, moveMost),
		began:     time.Now(),

		onTextState: deps.OnTextState,

		optOuts: newOptOutLooker(func(ctx context.Context, person string) (bool, error) { return deps.Launcher.OptedOut(ctx, person) }),
	}
	d.stripe, _ = deps.Payments.(stripeReader)
	for _, item := range deps.Config.HTTP.TrustedProxies {
		if p, ok := config.Network(item); ok { // the configuration has checked it
			d.proxies = append(d.proxies, p)
		}
	}
	d.skus = &routing{gate: deps.Gate, fill: d.fill}
	return d, nil
}

// Close waits for the starts under way and ends the background steps.
func (d *Door) Close() {
	d.starts.wg.Wait()
	d.chores.stop()
}

// Listeners of the door; a route belongs to one or more.
const (
	public = 1 << iota
	api
	ops
)

type route struct {
	on      int
	pattern string
	handler http.Handler
}

// routes is every call of the door.
func (d *Door) routes() []route {
	routes := []route{
		{api, "PUT /v1/stock/{sku}", d.bearer(d.putStock)},
		{api, "GET /v1/stock/{sku}", d.bearer(d.getStock)},
		{api, "GET /v1/stock", d.bearer(d.listStock)},
		{api, "POST /v1/stock/{sku}/pause", d.bearer(d.pauseStock(true))},
		{api, "POST /v1/stock/{sku}/resume", d.bearer(d.pauseStock(false))},
		{api, "GET /v1/stock/{sku}/policy", d.bearer(d.getPolicy)},
		{api, "PUT /v1/stock/{sku}/policy", d.bearer(d.putPolicy)},
		{api, "GET /v1/stock/{sku}/ledger", d.bearer(d.getLedger)},
		{api, "GET /v1/stock/{sku}/statement", d.bearer(d.getStatement)},
		{api, "GET /v1/stock/{sku}/line", d.bearer(d.getLine)},
		{api, "GET /v1/stock/{sku}/tripwire", d.bearer(d.getTripwire)},
		{api, "GET /v1/stock/{sku}/why", d.bearer(d.getSKUWhy)},
		{api, "GET /v1/stock/{sku}/texts", d.bearer(d.getTexts)},
		{api, "GET /v1/stock/{sku}/reconcile", d.bearer(d.getReconcile)},
		{api, "POST /v1/stock/{sku}/reconcile", d.bearer(d.postReconcile)},
		{public | api, "GET /v1/stock/{sku}/public", d.open(d.getPublic)},

		{public | api, "POST /v1/waitlist", d.open(d.postWaitlist)},
		{public | api, "GET /v1/waitlist/{entry_id}", d.open(d.getEntry)},
		{public | api, "DELETE /v1/waitlist/{entry_id}", d.open(d.deleteEntry)},
		{api, "GET /v1/waitlist/{entry_id}/why", d.bearer(d.getEntryWhy)},

		{api, "POST /v1/holds", d.bearer(d.postHold)},
		{api, "GET /v1/holds", d.bearer(d.listHolds)},
		{api, "GET /v1/holds/{hold_id}", d.bearer(d.getHold)},
		{api, "POST /v1/holds/{hold_id}/checkout", d.bearer(d.postCheckout)},
		{api, "POST /v1/holds/{hold_id}/payment-failed", d.bearer(d.postPaymentFailed)},
		{api, "POST /v1/holds/{hold_id}/confirm", d.bearer(d.postConfirm)},
		{api, "POST /v1/holds/{hold_id}/release", d.bearer(d.postRelease)},

		{api, "GET /v1/attention", d.bearer(d.getAttention)},
		{api, "POST /v1/find", d.bearer(d.postFind)},

		{api, "GET /v1/refunds", d.bearer(d.listRefunds)},
		{api, "POST /v1/refunds/{payment_id}/settle", d.bearer(d.postSettle)},
		{api, "POST /v1/refunds/{payment_id}/retry", d.bearer(d.postRetry)},

		{api, "GET /v1/events", d.bearer(d.listEvents)},
		{api, "POST /v1/events/test", d.bearer(d.postTest)},
		{api, "POST /v1/events/{event_id}/retry", d.bearer(d.postEventRetry)},

		{api, "POST /v1/webhooks/inventory", d.open(d.postInventory)},
		{public, "POST " + sms.StatusPath, d.open(d.postTextStatus)},
		{public, "POST " + sms.InboundPath, d.open(d.postInbound)},

		{public, "GET /{$}", d.page(d.indexPage)},
		{public, "GET /join/{sku}", d.page(d.joinPage)},
		{public, "POST /join/{sku}", d.form(d.joinForm)},
		{public, "GET /w/{entry_id}", d.page(d.entryPage)},
		{public, "POST /w/{entry_id}/leave", d.form(d.leaveForm)},
		{public, "POST /w/{entry_id}/again", d.form(d.againForm)},
		{public, "GET /r/{token}", d.page(d.linkPage)},
		{public, "POST /r/{token}", d.form(d.pressForm)},
		{public, "GET /h/{hold_id}", d.page(d.holdPage)},
		{public, "POST /h/{hold_id}/release", d.form(d.giveBackForm)},

		{ops, "GET /healthz", d.open(d.getHealth)},
		{ops, "GET /readyz", d.open(d.getReady)},
		{ops, "GET /metrics", d.metrics},
		{ops, "GET /openapi.json", d.open(d.getOpenAPI())},
		{ops, "GET /docs", d.open(d.getDocs)},
		{ops, "POST /codec/encode", d.open(d.postCodec(d.codec.Encode))},
		{ops, "POST /codec/decode", d.open(d.postCodec(d.codec.Decode))},
		{ops, "OPTIONS /codec/encode", d.open(d.optionsCodec)},
		{ops, "OPTIONS /codec/decode", d.open(d.optionsCodec)},
	}
	if d.stripe != nil {
		routes = append(routes, route{api, "POST /v1/webhooks/stripe", d.open(d.postStripe)})
	}
	return routes
}

// handler answers the routes of the listeners in on, and what is none with a problem.
func (d *Door) handler(on int) http.Handler {
	mux := http.NewServeMux()
	var methods []string
	for _, r := range d.routes() {
		if r.on&on != 0 {
			mux.Handle(r.pattern, r.handler)
			method, _, _ := strings.Cut(r.pattern, " ")
			methods = append(methods, method)
		}
	}
	slices.Sort(methods)
	mux.Handle(anyPath, d.nowhere(mux, slices.Compact(methods), on&public != 0))
	return d.accessLog(mux)
}

type handlerFunc func(w http.ResponseWriter, r *http.Request) error

// open serves a call that anyone may make.
func (d *Door) open(h handlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			writeProblem(w, d.problemOf(r, err))
		}
	})
}

// bearer serves a call of the shop's servers.
func (d *Door) bearer(h handlerFunc) http.Handler {
	return d.open(func(w http.ResponseWriter, r *http.Request) error {
		caller, err := d.caller(r)
		if err != nil {
			return err
		}
		if err := checkQuery(r); err != nil {
			return err
		}
		return h(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, caller)))
	})
}

// accessLog writes one line a request. It names the route, not the path: paths
// carry tokens and ids that are capabilities.
func (d *Door) accessLog(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		seen := &statusWriter{ResponseWriter: w}
		defer func() {
			if fault := recover(); fault != nil {
				if err, ok := fault.(error); ok && errors.Is(err, http.ErrAbortHandler) {
					panic(fault)
				}
				d.log.Error("a handler panicked", "route", r.Pattern, "fault", fault)
				if seen.status == 0 {
					writeProblem(seen, tryLater(retrySoon, "the outcome is not known; repeat the request as it was"))
				}
			}
			d.log.Info("request", "method", r.Method, "route", r.Pattern, "status", seen.status, "ms", time.Since(began).Milliseconds())
		}()
		next.ServeHTTP(seen, r)
	})
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.MaxBytesReader reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
