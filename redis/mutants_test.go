package redis

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mutants are one-line faults of the scripts. The model must notice each.
var mutants = []struct{ file, from, to string }{
	{"adopt_hold.lua", "num(6) > 0 and h[H_EXTENDED] == 0", "num(6) > 0"},
	{"release.lua", "if arg(6) == '1' then", "if false then"},
	{"confirm.lua", "if marked(h, ref) then", "if false then"},
	{"confirm.lua", "if S.on_hand < units then", "if S.on_hand < 0 then"},
	{"confirm.lua", "retake = open_to_all() >= units and", "retake ="},
	{"reserve.lua", "if line_first() and", "if false and"},
	{"confirm.lua", "add('on_hand', -units)", "add('on_hand', 0)"},
	{"drain.lua", "wait + taken - 1", "wait - taken"},
	{"join.lua", "get_entry(live or id)", "get_entry(id)"},
	{"lapse.lua", "if left > 0 then", "if left > 1 then"},
	{"lapse.lua", "not_told and h[H_SENT] == 0 and 0 or", "not_told and 0 or"},
	{"endings.lua", "turned(e) and K_PARKED or K_LINE", "K_LINE"},
	{"endings.lua", "turned(e) and K_PARKED or K_LINE", "K_PARKED"},
	{"leave.lua", "e[E_STATE] == 'offered' and state ~= 'expired'", "e[E_STATE] == 'offered'"},
	{"records.lua", "if old then", "if false then"},
	{"refund.lua", "if h[H_STATE] == 'sold' and", "if false and"},
	{"release.lua", "if left > 0 then", "if false then"},
	{"release.lua", "if state ~= 'provisional' then return", "if false then return"},
	{"reserve.lua", "if open_to_all() < units then", "if available() < units then"},
	{"reserve.lua", "if room(person) < units then", "if false then"},
	{"walk_in.lua", "redis.call('ZCOUNT', K_LEASES, '-inf', NOW) == 0)", "true)"},
	{"walk_in.lua", "redis.call('EXISTS', K_LINE, K_BACK, K_FRESH, K_OUTBOX, K_OFFERS) == 0", "true"},
	{"walk_in.lua", "or 0) >= units)", "or 0) >= 0)"},
	{"refusal.lua", "redis.call('HEXISTS', K_HOLDS, ARGV[10]) == 0", "true"},
	{"refusal.lua", "S.offered > 0 or line > 0", "line > 0"},
	{"refusal.lua", "or back > 0", ""},
	{"refusal.lua", "line + fresh + back + parked", "line + fresh + parked"},
	{"refusal.lua", "and S.paused == 0", "and true"},
	{"repair_gone.lua", "h[H_VERSION] ~= version or", ""},
	{"repair_gone.lua", "h[H_CREATED] > born", "h[H_CREATED] > NOW"},
	{"repair_gone.lua", "e[E_VERSION] ~= version or", ""},
	{"repair_gone.lua", "  miss_turn(h[H_ENTRY], true)\n", ""},
	{"repair_gone.lua", "e[E_LEAVING] = 1\n", "e[E_LEAVING] = 0\n"},
	{"endings.lua", "if offered and verb == 'release' then", "if false then"},
	{"adopt_hold.lua", "hold_line('adopt', 'refused', id, h, 'hold')", "local _ = nil"},
	{"stock.lua", "'return' or 'discarded'", "'return' or 'return'"},
	{"endings.lua", "if h[H_BACK] == 0 then", "if true then"},
	{"records.lua", "if S.limit == 0 then return redis.call", "if true then return redis.call"},
	{"settle.lua", "stop < head.arrival", "stop > head.arrival"},
	{"endings.lua", "if arrival then move(id, K_LIMITED, K_LINE, arrival) end", "local _ = arrival"},
	{"settle.lua", "move(head.id, head.from, K_LIMITED,", "move(head.id, head.from, K_PARKED,"},
	{"settle.lua", "move(head.id, head.from, K_LIMITED,", "move(head.id, K_LINE, K_LIMITED,"},
	{"settle.lua", "redis.call('ZREM', from, id)", "redis.call('ZREM', K_LINE, id)"},
	{"settings.lua", "redis.call('EXISTS', K_LIMITED) == 1 then", "false then"},
	{"settle.lua", "redis.call('RENAME', K_PARKED, K_BACK)", "redis.call('DEL', K_PARKED)"},
	{"settle.lua", "redis.call('RENAME', K_BACK, K_LINE)", "local _ = nil"},
	{"settle.lua", "if redis.call('EXISTS', K_PARKED) == 1 then", "if false then"},
	{"settle.lua", "if redis.call('EXISTS', K_PARKED, K_BACK) < 2 then", "if true then"},
	{"records.lua", "ipairs({ K_LINE, K_BACK })", "ipairs({ K_LINE })"},
	{"records.lua", "return a.arrival < b.arrival", "return a.arrival > b.arrival"},
	{"records.lua", "redis.call('EXISTS', K_LINE, K_BACK) > 0", "redis.call('EXISTS', K_LINE) > 0"},
	{"endings.lua", "ipairs({ K_LINE, K_BACK, K_FRESH, K_PARKED, K_LIMITED })", "ipairs({ K_LINE, K_FRESH, K_PARKED, K_LIMITED })"},
	{"endings.lua", "if e[E_MISSED] >= missed_keep() then", "if e[E_MISSED] > missed_keep() then"},
	{"records.lua", "redis.call('HGET', K_STOCK, 'missed_keep') or", "nil or"},
	{"records.lua", "redis.call('HGET', K_STOCK, 'max_age') or", "nil or"},
	{"settings.lua", "if value == '' then", "if false then"},
	{"snapshot.lua", "if tidy() then", "if sweep() then"},
	{"stock.lua", "if num(10) <= S.level then", "if num(10) < S.level then"},
	{"stock.lua", "hold[H_RETURNED] + units > hold[H_UNITS]", "units > hold[H_UNITS]"},
	{"stock.lua", "return units - (S.sold - num(11)) - S.on_hand", "return units - S.on_hand"},
	{"told.lua", "if h[H_SENT] == 0 then", "if true then"},
	{"unconfirm.lua", "count(h[H_PERSON], -units)", "count(h[H_PERSON], 0)"},
	{"unconfirm.lua", "if h[H_RETURNED] > 0 then", "if false then"},
}

const mutantEnv = "HOLDFAST_GATE_MUTANT"

// mutate puts the mutant that the environment names into the scripts of this
// process.
func mutate() {
	name := os.Getenv(mutantEnv)
	if name == "" {
		return
	}
	for i, m := range mutants {
		if fmt.Sprint(i) != name {
			continue
		}
		for _, s := range all {
			s.assemble(func(file string) string {
				text, err := luaFiles.ReadFile(file)
				if err != nil {
					panic(err)
				}
				if file == m.file {
					return strings.Replace(string(text), m.from, m.to, 1)
				}
				return string(text)
			})
		}
	}
}

// TestTheModelNoticesEachMutant runs the model against every mutant in a
// process of its own; each of those must fail. In the long form only.
func TestTheModelNoticesEachMutant(t *testing.T) {
	for i, m := range mutants {
		text, err := luaFiles.ReadFile(m.file)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(text), m.from), "mutant %d must change exactly one place of %s: %q", i, m.file, m.from)
	}
	if !long {
		return // the places above are checked in the short form, too
	}
	for i, m := range mutants {
		t.Run(fmt.Sprint(i, " ", m.file), func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestGateAgreesWithTheModel$", "-rapid.shrinktime=0s", "-rapid.nofailfile")
			cmd.Env = append(os.Environ(), "HOLDFAST_LONG=", mutantEnv+"="+fmt.Sprint(i))
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "the model did not notice %q in place of %q", m.to, m.from)
			require.Contains(t, string(out), "[rapid] failed after", "it must fail by a difference, not by a count")
		})
	}
}
