package advice

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// The plot: the share of paying buyers who were done, over the time that they needed.
const (
	plotWidth, plotHeight      = 720, 360
	plotLeft, plotRight        = 64, 24
	plotTop, plotBottom        = 40, 52
	plotAreaWide, plotAreaHigh = plotWidth - plotLeft - plotRight, plotHeight - plotTop - plotBottom
)

// SVG writes the plot as an SVG 1.1 picture that needs nothing else.
func (a Advice) SVG(out io.Writer, title string) error {
	end := a.Rows[len(a.Rows)-1].Hold
	for _, row := range a.Rows { // to the first hold time that cuts nobody off
		if row.Cut == 0 {
			end = row.Hold
			break
		}
	}
	x := func(d time.Duration) float64 {
		return plotLeft + plotAreaWide*min(1, float64(d)/float64(end))
	}
	y := func(share float64) float64 { return plotTop + plotAreaHigh*(1-share) }

	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<title>%s</title><rect width="100%%" height="100%%" fill="#fff"/><text x="%d" y="24" font-size="15">%[1]s</text>`+"\n", escape(title), plotLeft)
	for _, percent := range []int{0, 25, 50, 75, 100} {
		at := y(float64(percent) / 100)
		fmt.Fprintf(&b, `<path d="M%d %.1fh%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%d %%</text>`+"\n", plotLeft, at, plotAreaWide, plotLeft-8, at+4, percent)
	}
	for _, row := range a.Rows {
		if row.Hold < end/12 || row.Hold > end {
			continue // no room for its name
		}
		fmt.Fprintf(&b, `<path d="M%.1f %dv6" stroke="#555"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x(row.Hold), plotTop+plotAreaHigh, x(row.Hold), plotTop+plotAreaHigh+20, short(row.Hold))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d">time a paying buyer needed the hold (%d buyers)</text>`+"\n", plotLeft, plotHeight-8, a.Paying)
	fmt.Fprintf(&b, `<path d="M%.1f %.1f`, x(0), y(0))
	for i, d := range a.needed {
		fmt.Fprintf(&b, "H%.1fV%.1f", x(d), y(float64(i+1)/float64(a.Paying)))
	}
	fmt.Fprintf(&b, `H%.1f" fill="none" stroke="#0b57d0" stroke-width="2"/>`+"\n", x(end))
	if a.Suggested > 0 {
		fmt.Fprintf(&b, `<path d="M%.1f %dv%d" stroke="#b3261e" stroke-dasharray="6 4"/><text x="%.1f" y="%d" text-anchor="end" fill="#b3261e">suggested: %s</text>`+"\n",
			x(a.Suggested), plotTop, plotAreaHigh, x(a.Suggested)-6, plotTop+plotAreaHigh-8, short(a.Suggested))
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(out, b.String())
	return err
}

func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// short is a duration without the zeros at its end.
func short(d time.Duration) string {
	s := d.String()
	for _, zeros := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zeros) {
			s = s[:len(s)-2]
		}
	}
	return s
}
