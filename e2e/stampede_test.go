package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
	"holdfast/e2e/shop"
)

// inClear finds any of the phone numbers, with or without its country.
var inClear = regexp.MustCompile(`(^|\D)1?\d{3}55501\d{2}(\D|$)`)

func TestJoinStampede(t *testing.T) {
	people := 1000
	if long() {
		people = 3000
	}
	ctx := t.Context()
	h := ownHouse(t, stack.Options{}, lease)
	sku := "stampede"
	h.opened(t, sku, 0)
	temporal := h.Child(stack.Temporal)

	s := &stampede{h: h, sku: sku, phones: map[string]string{}, places: map[string]int64{}}
	began := time.Now()
	s.rush(t, "temporal_up", 0, people/3)
	require.NoError(t, temporal.Stop())
	s.rush(t, "temporal_down", people/3, 2*people/3)
	h.noNumberInClear(t)
	require.NoError(t, temporal.Start(ctx))
	s.rush(t, "temporal_back", 2*people/3, people)
	require.Len(t, s.phones, people)

	f, err := h.check.Gate(ctx, sku)
	require.NoError(t, err)
	require.Len(t, f.Entries, people)
	order := slices.Collect(maps.Keys(f.Entries))
	sort.Slice(order, func(i, j int) bool { return f.Entries[order[i]].Arrival < f.Entries[order[j]].Arrival })
	for i, id := range order {
		require.Equal(t, int64(i+1), s.places[id], "place of %s, told when it joined", id)
	}

	require.NoError(t, within(ctx, 5*time.Minute, "every entry is acknowledged", func() error {
		fresh, err := h.check.Unacknowledged(ctx, sku)
		if err == nil && fresh > 0 {
			err = fmt.Errorf("%d are not", fresh)
		}
		return err
	}))
	figure(t, "stampede_to_all_acknowledged", time.Since(began).Seconds(), "s")
	h.noNumberInClear(t)
	facts, err := h.check.Read(ctx, sku)
	require.NoError(t, err)
	for id, phone := range s.phones {
		require.Equal(t, phone, facts.Workflows[id].Phone, "phone in the workflow of %s", id)
	}

	require.NoError(t, h.shop.Restock(ctx, sku, 5))
	for i, id := range order[:5] {
		text, err := h.offerText(ctx, id)
		require.NoError(t, err)
		require.Equal(t, s.phones[id], text.To, "no. %d", i+1)
	}
	facts, err = h.check.Gate(ctx, sku)
	require.NoError(t, err)
	require.Len(t, facts.Holds, 5)
	h.noNumberInClear(t)
	h.judge(t, sku)
}

// stampede remembers what each accepted join was told.
type stampede struct {
	h      *house
	sku    string
	phones map[string]string // entry → phone
	places map[string]int64  // entry → place
}

// rush lets the people numbered from to to-1 join at once. Each of them must
// have an answer soon, whatever Temporal does.
func (s *stampede) rush(t *testing.T, name string, from, to int) {
	t.Helper()
	const soon = 5 * time.Second
	crowd, _ := crowdOf(s.h.shop, 256)
	defer crowd.HTTP.CloseIdleConnections()
	answers := make([]shop.Answer, to-from)
	waits := make([]time.Duration, to-from)
	barrier := make(chan struct{})
	began := time.Now()
	time.AfterFunc(0, func() { close(barrier) })
	require.NoError(t, each(t.Context(), to-from, to-from, func(ctx context.Context, i int) (err error) {
		<-barrier
		asked := time.Now()
		answers[i], err = crowd.AskJoin(ctx, s.sku, phone(from+i))
		waits[i] = time.Since(asked)
		return err
	}))
	figure(t, "joins_"+name, perSecond(to-from, time.Since(began)), "1/s")
	for i, a := range answers {
		require.Equal(t, http.StatusCreated, a.Status, a)
		e, err := shop.ParseEntry(a)
		require.NoError(t, err)
		s.phones[e.EntryID] = phone(from + i)
		s.places[e.EntryID] = e.Position
	}
	slices.Sort(waits)
	require.Less(t, waits[len(waits)-1], soon, "%s: the slowest join", name)
	figure(t, "slowest_join_"+name, float64(waits[len(waits)-1].Milliseconds()), "ms")
}

// noNumberInClear looks for phone numbers in every key of Redis, in every file
// that Redis has written and in the door's log.
func (h *house) noNumberInClear(t *testing.T) {
	t.Helper()
	require.Regexp(t, inClear, phone(0))
	keys, err := h.check.KeysWith(t.Context(), inClear.MatchString)
	require.NoError(t, err)
	require.Empty(t, keys, "keys with a phone number in clear")
	logged := 0
	root := filepath.Join(h.dir, stack.Redis)
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		logged += len(raw)
		if at := inClear.Find(raw); at != nil {
			t.Errorf("%s has the phone number %q", path, at)
		}
		return err
	}))
	require.NotZero(t, logged, "no append-only file in %s", root)
	log, err := os.ReadFile(filepath.Join(h.dir, "logs", "door.log"))
	require.NoError(t, err)
	require.NotRegexp(t, inClear, string(log))
}
