package sms_test

import (
	"net/url"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/sms"
)

// stages are the states in the order of a text's life; those in one stage exclude
// each other.
var stages = [][]sms.State{
	{""},
	{sms.StateAccepted, sms.StateScheduled},
	{sms.StateQueued},
	{sms.StateSending},
	{sms.StateSent},
	{sms.StateDelivered, sms.StateUndelivered, sms.StateFailed, sms.StateCanceled, sms.StateRead},
}

func TestStatesOnlyMoveForward(t *testing.T) {
	stage := map[sms.State]int{}
	var all []sms.State
	for i, states := range stages {
		for _, s := range states {
			stage[s] = i
			all = append(all, s)
		}
	}
	pairs := 0
	for _, old := range all {
		for _, news := range all {
			pairs++
			got := old.Advance(news)
			switch {
			case old == sms.StateDelivered && news == sms.StateRead:
				require.Equal(t, sms.StateRead, got)
			case stage[news] > stage[old]:
				require.Equal(t, news, got, "%q then %q", old, news)
			default:
				require.Equal(t, old, got, "%q then %q", old, news)
			}
			require.Equal(t, got, got.Advance(news), "a repeat changes nothing")
			require.Equal(t, got, got.Advance(old), "what came before changes nothing")
		}
		require.Equal(t, old, old.Advance("exploded"), "nor does a word that nobody knows")
		require.Equal(t, stage[old] == len(stages)-1, old.Final())
		require.Equal(t, slices.Contains([]sms.State{sms.StateUndelivered, sms.StateFailed, sms.StateCanceled}, old), old.Lost())
	}
	require.Equal(t, len(all)*len(all), pairs)
}

// Callbacks of one text in any order end in one state.
func TestTheOrderOfCallbacksDoesNotMatter(t *testing.T) {
	for _, last := range []sms.State{sms.StateDelivered, sms.StateUndelivered, sms.StateFailed} {
		for order := range permutations([]sms.State{sms.StateQueued, sms.StateSending, sms.StateSent, last}) {
			var s sms.State
			for _, news := range order {
				s = s.Advance(news)
			}
			require.Equal(t, last, s, "%v", order)
		}
	}
}

func permutations(list []sms.State) func(func([]sms.State) bool) {
	return func(yield func([]sms.State) bool) {
		if len(list) == 1 {
			yield(list)
			return
		}
		for i, first := range list {
			for rest := range permutations(slices.Concat(list[:i], list[i+1:])) {
				if !yield(append([]sms.State{first}, rest...)) {
					return
				}
			}
		}
	}
}

func TestParseStatus(t *testing.T) {
	got, err := sms.ParseStatus(url.Values{"MessageSid": {"SM1"}, "MessageStatus": {"undelivered"}, "ErrorCode": {"30006"}})
	require.NoError(t, err)
	require.Equal(t, sms.StatusUpdate{TextID: "SM1", State: sms.StateUndelivered, Code: 30006}, got)
	got, err = sms.ParseStatus(url.Values{"MessageSid": {"SM1"}, "MessageStatus": {"sent"}, "SmsStatus": {"queued"}})
	require.NoError(t, err)
	require.Equal(t, sms.StatusUpdate{TextID: "SM1", State: sms.StateSent}, got)
	for word, form := range map[string]url.Values{
		"MessageSid":    {"MessageStatus": {"sent"}},
		"MessageStatus": {"MessageSid": {"SM1"}},
		`"received"`:    {"MessageSid": {"SM1"}, "MessageStatus": {"received"}},
		"ErrorCode":     {"MessageSid": {"SM1"}, "MessageStatus": {"failed"}, "ErrorCode": {"many"}},
	} {
		_, err := sms.ParseStatus(form)
		require.ErrorContains(t, err, word)
	}
}
