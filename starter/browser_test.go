package starter

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	cdpnetwork "github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/internal/chromium"
)

// phones are 360 pixels wide at the least.
const phoneWidth, phoneHeight = 360, 720

const mostPicture = 60 << 10 // bytes

// reader is a shopper's browser before a real door.
type reader struct {
	chromium.Tab
	t *testing.T
}

func openReader(t *testing.T) reader { return reader{chromium.Open(t, phoneWidth, phoneHeight), t} }

// serve lets a browser reach the house, and gives its product a picture and a
// price.
func (h *house) serve() string {
	h.t.Helper()
	server := httptest.NewServer(h.door.all())
	h.t.Cleanup(server.Close)
	pictures := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		_, _ = w.Write(chairPicture) // the browser has gone
	}))
	h.t.Cleanup(pictures.Close)
	a := h.call("PUT", "/v1/stock/"+h.sku, map[string]any{
		"title": "Oak Chair", "checkout_url": checkout, "image_url": pictures.URL + "/chair.png", "price": map[string]any{"amount": 14900, "currency": "EUR"},
	})
	require.Less(h.t, a.status, 300, a.body)
	return server.URL
}

var chairPicture = drawChair()

func drawChair() []byte {
	img := image.NewNRGBA(image.Rect(0, 0, 144, 144))
	fill := func(c color.Color, x, y, w, h int) {
		draw.Draw(img, image.Rect(x, y, x+w, y+h), image.NewUniform(c), image.Point{}, draw.Src)
	}
	oak, shade := color.NRGBA{0xb0, 0x7a, 0x45, 255}, color.NRGBA{0x8a, 0x5c, 0x30, 255}
	fill(color.NRGBA{0xe9, 0xe4, 0xd8, 255}, 0, 0, 144, 144)
	fill(shade, 46, 26, 9, 92)
	fill(shade, 89, 26, 9, 92)
	for y := 30; y < 70; y += 14 {
		fill(oak, 46, y, 52, 8)
	}
	fill(oak, 38, 76, 68, 10)
	fill(oak, 42, 86, 9, 36)
	fill(oak, 93, 86, 9, 36)
	var out bytes.Buffer
	if err := png.Encode(&out, img); err != nil {
		panic(err) // into memory
	}
	return out.Bytes()
}

func (b reader) width(width int) {
	b.t.Helper()
	b.Must(b.t, chromedp.EmulateViewport(int64(width), phoneHeight))
}

func (b reader) scripts(on bool) {
	b.t.Helper()
	b.Must(b.t, emulation.SetScriptExecutionDisabled(!on))
}

func (b reader) dark(on bool) {
	b.t.Helper()
	scheme := map[bool]string{true: "dark", false: "light"}[on]
	b.Must(b.t, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
}

func (b reader) language(tag string) {
	b.t.Helper()
	b.Must(b.t, cdpnetwork.SetExtraHTTPHeaders(cdpnetwork.Headers{"Accept-Language": tag}))
}

func (b reader) open(url string) {
	b.t.Helper()
	b.Must(b.t, chromedp.Navigate(url))
}

// says is what the page shows a reader.
func (b reader) says() string {
	b.t.Helper()
	var text string
	b.Eval(b.t, `document.body.innerText`, &text)
	return strings.Join(strings.Fields(text), " ")
}

// faults are the parts of a page that somebody cannot see or cannot hit.
const faults = `(() => {
	const wrong = [], wide = document.documentElement.clientWidth;
	if (document.documentElement.scrollWidth > wide) wrong.push('the page scrolls sideways: ' + document.documentElement.scrollWidth);
	for (const el of document.querySelectorAll('body *')) {
		const r = el.getBoundingClientRect(), name = el.outerHTML.slice(0, 90);
		if (!r.width || !r.height || el.closest('.sr') || el.tagName === 'SCRIPT') continue;
		if (r.left < 0 || r.right > wide + 0.5) wrong.push('cut at the side: ' + name);
		if (el.scrollWidth > el.clientWidth + 1 && getComputedStyle(el).display !== 'inline') wrong.push('overflows: ' + name);
		let target = el.matches('a, button, summary, input');
		if (el.matches('input[type=checkbox]')) target = false;
		if (el.matches('label.check')) target = true;
		if (target && (r.height < 44 || r.width < 44)) wrong.push('too small for a thumb, ' + r.width + '×' + r.height + ': ' + name);
	}
	return wrong.join('\n');
})()`

func (b reader) fits(where string) {
	b.t.Helper()
	var wrong string
	b.Eval(b.t, faults, &wrong)
	require.Empty(b.t, wrong, where)
}

// mainButton is what the page is for.
const mainButton = `document.querySelector('.card form > button, .card a.button')`

// reaches walks to the main button with the keyboard alone, and sees that it is
// there; a page without one has nothing to reach.
func (b reader) reaches(where string) {
	b.t.Helper()
	var has bool
	b.Eval(b.t, mainButton+` !== null`, &has)
	if !has {
		return
	}
	b.Eval(b.t, `(document.activeElement && document.activeElement.blur(), window.scrollTo(0, 0))`, nil)
	for range 12 {
		b.Must(b.t, chromedp.KeyEvent(kb.Tab))
		var at string
		b.Eval(b.t, `document.activeElement === `+mainButton+` ? getComputedStyle(document.activeElement).outlineStyle + getComputedStyle(document.activeElement).outlineWidth : ''`, &at)
		if at != "" {
			require.Equal(b.t, "solid3px", at, "%s: the focus is to be seen", where)
			return
		}
	}
	b.t.Fatalf("%s: the keyboard does not reach the main button", where)
}

// picture stores the page as a phone shows it, in few colours.
func (b reader) picture(name string) {
	b.t.Helper()
	var height int64
	b.Eval(b.t, `document.body.scrollHeight`, &height)
	var raw []byte
	b.Must(b.t, chromedp.EmulateViewport(phoneWidth, height), chromedp.CaptureScreenshot(&raw))
	b.width(phoneWidth)
	img, err := png.Decode(bytes.NewReader(raw))
	require.NoError(b.t, err)
	small := image.NewPaletted(img.Bounds(), paletteOf(img))
	draw.Draw(small, img.Bounds(), img, img.Bounds().Min, draw.Src)
	var out bytes.Buffer
	require.NoError(b.t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small))
	require.Less(b.t, out.Len(), mostPicture, name)
	chromium.Store(b.t, name+".png", out.Bytes())
}

// paletteOf are the colours that a picture has most of.
func paletteOf(img image.Image) color.Palette {
	count := map[color.RGBA]int{}
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
			count[color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)]++
		}
	}
	var out color.Palette
	for len(out) < 256 && len(count) > 0 {
		var best color.RGBA
		most := 0
		for c, n := range count {
			if n > most {
				best, most = c, n
			}
		}
		delete(count, best)
		out = append(out, best)
	}
	return out
}

// Every page and state fits a phone, with and without JavaScript, is readable by
// everybody in both colour schemes, and has its main button where the keyboard
// finds it.
func TestEveryPageInABrowser(t *testing.T) {
	b := openReader(t)
	for _, s := range pageStates {
		t.Run(s.name, func(t *testing.T) {
			b := reader{b.Tab, t}
			h := newHouse(t, s.units, append(s.settings, withPages)...)
			url := h.serve()
			path := s.arrange(h)
			b.width(phoneWidth)
			b.scripts(true)
			b.dark(false)
			visit := func() {
				b.open(url + path)
				if s.act != nil {
					s.act(b)
				}
			}
			visit()
			require.Contains(t, b.says(), s.shows)
			b.fits("with JavaScript")
			require.Empty(t, b.Axe(t), "light")
			b.picture("page-" + s.name)
			b.reaches("with JavaScript")
			b.Eval(t, `document.activeElement && document.activeElement.blur()`, nil)
			b.dark(true)
			require.Empty(t, b.Axe(t), "dark")
			if s.dark {
				b.picture("page-" + s.name + "-dark")
			}
			b.dark(false)
			b.width(1280)
			b.fits("on a wide screen")

			b.width(phoneWidth)
			b.language("de")
			visit()
			var lang string
			b.Eval(t, `document.documentElement.lang`, &lang)
			require.Equal(t, "de", lang)
			b.fits("in German")
			require.Empty(t, b.Axe(t), "in German")
			if s.more {
				b.picture("page-" + s.name + "-de")
			}
			b.language("en")

			b.width(phoneWidth)
			b.scripts(false)
			visit()
			require.Contains(t, b.says(), s.shows)
			b.fits("without JavaScript")
			if s.more {
				b.picture("page-" + s.name + "-plain")
			}
			b.reaches("without JavaScript")
			b.scripts(true)
		})
	}
}

// pageState is one page in one state. arrange answers its path, act does what
// cannot be reached by an address.
type pageState struct {
	name     string
	units    int64
	settings []setting
	arrange  func(h *house) string
	act      func(b reader)
	shows    string
	dark     bool // has a picture in the dark
	more     bool // and one without JavaScript, and one in German
}

// docs/pages.md shows every state.
func TestThePagesAreInTheDocs(t *testing.T) {
	raw, err := os.ReadFile("../docs/pages.md")
	require.NoError(t, err)
	for _, s := range pageStates {
		names := []string{"page-" + s.name}
		if s.dark {
			names = append(names, "page-"+s.name+"-dark")
		}
		if s.more {
			names = append(names, "page-"+s.name+"-plain", "page-"+s.name+"-de")
		}
		for _, name := range names {
			require.Contains(t, string(raw), "images/"+name+".png")
			picture, err := os.Stat("../docs/images/" + name + ".png")
			require.NoError(t, err, "make screenshots")
			require.Less(t, picture.Size(), int64(mostPicture))
		}
	}
}

// click presses a button, and waits for the page that follows.
func (b reader) click(selector string) {
	b.t.Helper()
	b.Must(b.t, chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := chromedp.RunResponse(ctx, chromedp.Click(selector, chromedp.ByQuery))
		return err
	}))
}

func (h *house) pressed() (entryID, holdID, path string) {
	h.t.Helper()
	entryID, holdID, path = h.offer()
	a := h.press(path)
	require.Equal(h.t, http.StatusSeeOther, a.status, a.body)
	return entryID, holdID, path
}

// refunded is a hold whose payment came too late.
func refunded(status contract.PaymentStatus) func(h *house) string {
	return func(h *house) string {
		v := h.hold()
		_, err := h.gate.Release(h.t.Context(), releaseOf(h.sku, v.HoldID, contract.ReasonPaymentFailed))
		require.NoError(h.t, err)
		_, err = h.gate.Refund(h.t.Context(), h.sku, v.HoldID, "pay_late", "payment")
		require.NoError(h.t, err)
		amount := int64(14900)
		status.Amount, status.Currency = &amount, "EUR"
		h.wf.set(func() { h.wf.statuses[contract.PaymentID(v.HoldID, "pay_late")] = status })
		return "/h/" + v.HoldID
	}
}

func fill(name, value string) chromedp.Action {
	return chromedp.SetValue(fmt.Sprintf("input[name=%s]", name), value, chromedp.ByQuery)
}
