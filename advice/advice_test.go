package advice

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// a story is what happened to a hold, so many seconds after it was held.
func story(id string, units int64, steps ...any) []Line {
	lines := []Line{{noon, "reserve", "walk-in", units, id}, {noon, "adopt", "held", units, id}}
	for i := 0; i+2 < len(steps); i += 3 {
		lines = append(lines, Line{noon.Add(time.Duration(steps[i+2].(int)) * time.Second), steps[i].(string), steps[i+1].(string), units, id})
	}
	return lines
}

func TestCarts(t *testing.T) {
	for name, c := range map[string]struct {
		lines []Line
		paid  bool
		need  int
		kept  int
		ended bool
		given bool
	}{
		"paid":                        {story("a", 1, "confirm", "sold", 90), true, 90, 0, true, false},
		"the payment's start counts":  {story("a", 1, "adopt", "extended", 60, "confirm", "sold", 300), true, 60, 0, true, false},
		"paid too late and sold":      {story("a", 1, "release", "expired", 600, "confirm", "retaken", 700), true, 700, 600, true, false},
		"paid too late and sent back": {story("a", 1, "release", "expired", 600, "refund", "marked", 900), true, 900, 600, true, false},
		"a second payment":            {story("a", 1, "confirm", "sold", 90, "refund", "marked", 95), true, 90, 0, true, false},
		"expired":                     {story("a", 1, "release", "expired", 600), false, 0, 600, true, false},
		"given back":                  {story("a", 1, "release", "released", 30), false, 0, 30, true, true},
		"still open":                  {story("a", 1), false, 0, 0, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			carts := Carts(c.lines)
			require.Len(t, carts, 1)
			got := carts[0]
			require.Equal(t, []any{c.paid, c.need, c.kept, c.ended, c.given},
				[]any{got.Paid, int(got.Needed.Seconds()), int(got.Kept.Seconds()), got.Ended, got.GivenUp})
		})
	}
	require.Empty(t, Carts(story("a", 1, "confirm", "sold", 1)[2:]), "nobody knows when it began")
	require.Empty(t, Carts([]Line{{noon, "stock", "restock", 5, "e1"}}))
}

// The figures of a known day, reckoned by hand.
func TestAdvice(t *testing.T) {
	var lines []Line
	for i := range 200 { // 1 to 200 seconds
		lines = append(lines, story(fmt.Sprint("paid", i), 1, "confirm", "sold", i+1)...)
	}
	lines = append(lines, story("slow", 1, "confirm", "sold", 1000)...)
	lines = append(lines, story("gone", 3, "release", "expired", 600)...)
	lines = append(lines, story("back", 2, "release", "released", 45)...)
	lines = append(lines, story("open", 1)...)
	a := Of(Carts(lines), 0.01)
	require.Equal(t, []int{201, 2, 1}, []int{a.Paying, a.Abandoned, a.Open})
	row := map[time.Duration]Row{}
	for _, r := range a.Rows {
		row[r.Hold] = r
	}
	require.Equal(t, 171, row[30*time.Second].Cut, "who needed exactly 30 s was in time")
	require.Equal(t, 1, row[4*time.Minute].Cut)
	require.Equal(t, 0, row[20*time.Minute].Cut)
	require.Equal(t, 5*30*time.Second, row[30*time.Second].Idle)
	require.Equal(t, 3*5*time.Minute+2*45*time.Second, row[5*time.Minute].Idle, "a cart that was given back is not kept longer")
	require.Equal(t, 4*time.Minute, a.Suggested, "1 of 201 is less than one in a hundred")
	require.Equal(t, 20*time.Minute, Of(Carts(lines), 0).Suggested)
}

// Too few say nothing, and when none will do none is suggested.
func TestNoAdvice(t *testing.T) {
	var lines []Line
	for i := range Enough - 1 {
		lines = append(lines, story(fmt.Sprint(i), 1, "confirm", "sold", 10)...)
	}
	require.Zero(t, Of(Carts(lines), 0.01).Suggested)
	lines = append(lines, story("one more", 1, "confirm", "sold", 10)...)
	require.Equal(t, 30*time.Second, Of(Carts(lines), 0.01).Suggested)
	for i := range 10 {
		lines = append(lines, story(fmt.Sprint("day", i), 1, "release", "expired", 600, "refund", "marked", 90_000)...)
	}
	require.Zero(t, Of(Carts(lines), 0.01).Suggested)
}

// A longer hold cuts off fewer and costs more, whatever happened.
func TestLongerCutsFewer(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var lines []Line
		for i := range r.IntN(50) {
			end := [][2]string{{"confirm", "sold"}, {"release", "expired"}, {"release", "released"}}[r.IntN(3)]
			lines = append(lines, story(fmt.Sprint(i), int64(1+r.IntN(4)), end[0], end[1], r.IntN(9000))...)
		}
		rows := Of(Carts(lines), 0.01).Rows
		for i := range rows[1:] {
			require.LessOrEqual(t, rows[i+1].Cut, rows[i].Cut)
			require.GreaterOrEqual(t, rows[i+1].Idle, rows[i].Idle)
		}
	}
}

// The plot is XML whatever the title, and ends at the hold time that cuts nobody off.
func TestPlot(t *testing.T) {
	var lines []Line
	for i := range 150 {
		lines = append(lines, story(fmt.Sprint(i), 1, "confirm", "sold", 2*i)...)
	}
	for name, a := range map[string]Advice{"buyers": Of(Carts(lines), 0.01), "nobody": Of(nil, 0.01)} {
		t.Run(name, func(t *testing.T) {
			var svg bytes.Buffer
			require.NoError(t, a.SVG(&svg, `Paying buyers of <"A&B">`))
			dec := xml.NewDecoder(bytes.NewReader(svg.Bytes()))
			for {
				_, err := dec.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
			}
			require.Contains(t, svg.String(), fmt.Sprintf("(%d buyers)", a.Paying))
			require.Equal(t, a.Suggested > 0, bytes.Contains(svg.Bytes(), []byte("suggested: 5m")))
			require.NotContains(t, svg.String(), "NaN")
		})
	}
}
