package starter

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	cdpnetwork "github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/redis"
)

// await waits until something holds of the page, looking at each change of it.
func (b reader) await(condition string) {
	b.t.Helper()
	b.Eval(b.t, `new Promise(done => {
		const look = () => (`+condition+`) && (done(), true);
		if (!look()) new MutationObserver((_, self) => look() && self.disconnect())
			.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
	})`, nil)
}

func (b reader) heading(want string) {
	b.t.Helper()
	b.await(fmt.Sprintf(`document.querySelector('h1').textContent === %q`, want))
}

// left is what the countdown shows.
func (b reader) left() time.Duration {
	b.t.Helper()
	var shown string
	b.Eval(b.t, `document.querySelector('.digits [aria-hidden]').textContent`, &shown)
	minutes, seconds, ok := strings.Cut(shown, ":")
	require.True(b.t, ok, shown)
	m, err := strconv.Atoi(minutes)
	require.NoError(b.t, err)
	s, err := strconv.Atoi(seconds)
	require.NoError(b.t, err)
	return time.Duration(m)*time.Minute + time.Duration(s)*time.Second
}

func holdsFor(ttl time.Duration) setting {
	return func(cfg *config.Config, _ *redis.Options) { cfg.Hold.TTL, cfg.Hold.After = ttl, "page" }
}

// anHourOff puts the phone's clock wrong.
func (b reader) anHourOff(ahead time.Duration) {
	b.t.Helper()
	b.Must(b.t, chromedp.ActionFunc(func(ctx context.Context) error {
		id, err := cdppage.AddScriptToEvaluateOnNewDocument(fmt.Sprintf(`{
			const real = Date, off = %d;
			Date = class extends real {
				constructor(...given) { given.length ? super(...given) : super(real.now() + off); }
				static now() { return real.now() + off; }
			};
		}`, ahead.Milliseconds())).Do(ctx)
		b.t.Cleanup(func() {
			_ = b.Do(cdppage.RemoveScriptToEvaluateOnNewDocument(id)) // the browser may have ended
		})
		return err
	}))
}

func (h *house) holdLeft(holdID string) time.Duration {
	h.t.Helper()
	out, _, err := h.gate.ReadHold(h.t.Context(), h.sku, holdID)
	require.NoError(h.t, err)
	return out.Left
}

func TestTheCountdownIsTheServers(t *testing.T) {
	b := openReader(t)
	h := newHouse(t, 0, holdsFor(10*time.Minute))
	url := h.serve()
	_, holdID, path := h.pressed()
	for name, ahead := range map[string]time.Duration{"right": 0, "an hour ahead": time.Hour, "an hour behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			b := reader{b.Tab, t}
			b.anHourOff(ahead)
			for _, p := range []string{"/h/" + holdID, path} {
				before := h.holdLeft(holdID)
				b.open(url + p)
				left := b.left()
				require.LessOrEqual(t, left, before+time.Second, "never more than there is, but for the second that has begun")
				require.Greater(t, left, before-30*time.Second)
				var hidden bool
				b.Eval(t, `document.querySelector('.until').hidden`, &hidden)
				require.Equal(t, ahead != 0, hidden, "an instant that the phone's clock makes wrong is not shown")
			}
		})
	}
}

// An answer that was long on its way is no promise of the time that it took.
func TestASlowLineShowsNoMoreThanThereIs(t *testing.T) {
	b := openReader(t)
	h := newHouse(t, 0, holdsFor(10*time.Minute))
	h.serve()
	_, holdID, _ := h.pressed()
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := httptest.NewRecorder()
		h.door.all().ServeHTTP(page, r)
		if strings.HasPrefix(r.URL.Path, "/h/") {
			timer := time.NewTimer(3 * time.Second) // what a slow line takes
			defer timer.Stop()
			<-timer.C
		}
		maps.Copy(w.Header(), page.Header())
		w.WriteHeader(page.Code)
		_, _ = w.Write(page.Body.Bytes()) // the browser has gone
	}))
	t.Cleanup(slow.Close)
	before := h.holdLeft(holdID)
	b.open(slow.URL + "/h/" + holdID)
	require.LessOrEqual(t, b.left(), before-2*time.Second)
}

// At its end the page asks the server. What ends a hold is the server alone.
func TestTheEndOfTheCountdown(t *testing.T) {
	b := openReader(t)
	for name, c := range map[string]struct {
		then func(h *house, holdID string)
		want string
	}{
		"expired": {func(h *house, holdID string) {
			deadline := h.record(holdID).Deadline
			out, err := h.gate.Release(h.t.Context(), redis.ReleaseRequest{SKU: h.sku, HoldID: holdID, Reason: contract.ReasonExpired, Actor: "hold", Deadline: deadline})
			require.NoError(h.t, err)
			require.Equal(h.t, redis.OK, out.Verdict)
		}, "This one is gone"},
		"paid at the last moment": {func(h *house, holdID string) {
			require.Equal(h.t, http.StatusOK, h.confirm(holdID, "pay_1").status)
		}, "Bought. It is yours."},
	} {
		t.Run(name, func(t *testing.T) {
			b := reader{b.Tab, t}
			h := newHouse(t, 0, holdsFor(3*time.Second))
			url := h.serve()
			_, holdID, _ := h.pressed()
			h.untouched(func() {
				b.open(url + "/h/" + holdID)
				b.heading("The time is over")
				require.Equal(t, contract.HoldHeld, h.record(holdID).State)
			})
			b.await(`document.getElementById('news').textContent === 'The time is over'`)
			c.then(h, holdID)
			b.heading(c.want)
			b.await(fmt.Sprintf(`document.getElementById('news').textContent === %q`, c.want))
			var title string
			b.Eval(t, `document.title`, &title)
			require.Equal(t, "Oak Chair · Oak & Sons", title)
		})
	}
}

// A reader who listens hears of minutes, not of seconds.
func TestTheCountdownIsNotReadOutEverySecond(t *testing.T) {
	b := openReader(t)
	h := newHouse(t, 0, holdsFor(64*time.Second))
	url := h.serve()
	_, holdID, _ := h.pressed()
	b.open(url + "/h/" + holdID)
	b.Eval(t, `window.heard = []; new MutationObserver(() => heard.push(document.getElementById('news').textContent))
		.observe(document.getElementById('news'), {childList: true, characterData: true, subtree: true})`, nil)
	b.await(`document.querySelector('.digits [aria-hidden]').textContent === '0:58'`)
	var heard []string
	b.Eval(t, `heard`, &heard)
	require.Equal(t, []string{"1 minute left"}, heard)
	var live string
	b.Eval(t, `document.querySelector('.clock').closest('[aria-live], [role=timer], [role=status]') ? 'live' : ''`, &live)
	require.Empty(t, live)
}

// Whoever looks takes nothing, whatever their browser does by itself: only a press
// does, by keyboard too, and twice is once.
// B69.
func TestOnlyAPressTakes(t *testing.T) {
	b := openReader(t)
	h := newHouse(t, 0, holdsFor(10*time.Minute))
	url := h.serve()
	_, holdID, path := h.offer()
	h.untouched(func() {
		for range 5 {
			b.open(url + path)
			b.reaches("the link")
		}
		for _, header := range []string{"Sec-Purpose", "Purpose", "X-Moz", "X-Purpose"} {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				a := h.send(h.request(method, path, nil, header, "prefetch", "Authorization", "", "User-Agent", "facebookexternalhit/1.1"))
				require.Equal(t, http.StatusOK, a.status)
			}
		}
		require.Equal(t, contract.HoldOffered, h.record(holdID).State)
	})
	b.Must(t, chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := chromedp.RunResponse(ctx, chromedp.KeyEvent(kb.Enter+kb.Enter))
		return err
	}))
	b.heading("It is held for you")
	require.Equal(t, contract.HoldHeld, h.record(holdID).State)
	require.Equal(t, [4]int64{1, 1, 0, 0}, h.parts())
	b.reaches("the hold")
}

// Leaving asks once more, also where no script runs.
func TestLeavingWithoutJavaScript(t *testing.T) {
	b := openReader(t)
	b.scripts(false)
	h := newHouse(t, 0)
	url := h.serve()
	v := h.join("+12025550101")
	b.open(url + "/w/" + v.EntryID)
	require.NotContains(t, b.says(), "Yes, leave the line")
	b.Must(t, chromedp.Click("summary", chromedp.ByQuery))
	require.Contains(t, b.says(), "Yes, leave the line")
	require.Equal(t, int64(1), h.counters().Waiting)
	b.click("details button")
	require.Contains(t, b.says(), "You have left the line")
	require.Zero(t, h.counters().Waiting)
}

// A page that could not be answered tries again by itself; one whose press was not
// answered comes back with its button.
func TestAPageRecovers(t *testing.T) {
	b := openReader(t)
	h := newHouse(t, 0, holdsFor(10*time.Minute))
	url := h.serve()
	_, holdID, path := h.offer()
	b.open(url + path)
	h.gate.break_("Reserve", redis.ErrUnavailable, nil)
	b.click("main form button")
	require.Contains(t, b.says(), "One moment, please")
	h.gate.break_("", nil, nil)
	b.heading("It is your turn")
	require.Equal(t, contract.HoldOffered, h.record(holdID).State, "nothing presses by itself")
	b.click("main form button")
	b.heading("It is held for you")
}

// Without a connection the page says so, and what it showed stays.
func TestAPageWithoutAConnection(t *testing.T) {
	b := openReader(t)
	h := newHouse(t, 0, holdsFor(10*time.Minute))
	url := h.serve()
	_, holdID, _ := h.pressed()
	b.open(url + "/h/" + holdID)
	connected := func(yes bool) {
		b.Must(t, cdpnetwork.OverrideNetworkState(!yes, 0, -1, -1), chromedp.ActionFunc(func(ctx context.Context) error {
			_, err := cdpnetwork.EmulateNetworkConditionsByRule([]*cdpnetwork.Conditions{{Offline: !yes, DownloadThroughput: -1, UploadThroughput: -1}}).Do(ctx)
			return err
		}))
	}
	connected(false)
	// Coming back to the page asks the server. One question may still be answered by the
	// connection of before, so it comes back until the note is there, or gone.
	comesBackUntil := func(noted bool) {
		b.Eval(t, fmt.Sprintf(`new Promise(done => {
			const comes = setInterval(() => {
				if (%t !== !!document.querySelector('.offline')) return window.dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}));
				clearInterval(comes);
				done();
			}, 50);
		})`, noted), nil)
	}
	comesBackUntil(true)
	require.Contains(t, b.says(), "No connection right now. What is kept for you stays kept")
	require.Contains(t, b.says(), "Go to the checkout")
	require.NotZero(t, b.left())
	connected(true)
	comesBackUntil(false)
}
