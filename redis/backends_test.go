package redis

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

// The suite runs on a redis-server of its own. TestTheSuiteOnEveryBackend runs it
// once more on a Redis Cluster and on the in-process stand-in, each in a process
// of its own, which these names select.
const (
	backendEnv = "GATE_BACKEND"
	cluster    = "cluster"
	standIn    = "stand-in"
)

func backendName() string { return os.Getenv(backendEnv) }

// The backend of this process.
var (
	backendAddrs []string
	closeBackend func()
)

func openBackend() error {
	switch name := backendName(); name {
	case "":
		server, err := redistest.Start("--appendonly", "no")
		if err != nil {
			return err
		}
		backendAddrs, closeBackend = []string{server.Addr}, server.Close
	case cluster:
		nodes, err := redistest.StartCluster(3)
		if err != nil {
			return err
		}
		backendAddrs, closeBackend = nodes.Addrs(), nodes.Close
	case standIn:
		server, err := miniredis.Run()
		if err != nil {
			return err
		}
		backendAddrs, closeBackend = []string{server.Addr()}, server.Close
	default:
		return fmt.Errorf("%s: no backend is called %q", backendEnv, name)
	}
	return nil
}

// dialShared opens another client of the backend; edit may change its options.
func dialShared(edit func(*goredis.UniversalOptions)) goredis.UniversalClient {
	opts := &goredis.UniversalOptions{Addrs: backendAddrs, ContextTimeoutEnabled: true}
	if edit != nil {
		edit(opts)
	}
	return goredis.NewUniversalClient(opts)
}

// verbCounter notes which scripts the backend has run.
type verbCounter struct {
	mu    sync.Mutex
	names map[string]string // by SHA-1
	ran   map[string]bool
}

func countVerbs(rdb goredis.UniversalClient) *verbCounter {
	v := &verbCounter{names: map[string]string{}, ran: map[string]bool{}}
	for _, s := range all {
		v.names[s.shebang.Hash()], v.names[s.plain.Hash()] = s.name, s.name
	}
	rdb.AddHook(v)
	return v
}

func (v *verbCounter) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (v *verbCounter) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

func (v *verbCounter) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		err := next(ctx, cmd)
		sha := ""
		switch args := cmd.Args(); args[0] {
		case "evalsha":
			sha, _ = args[1].(string)
		case "eval":
			text, _ := args[1].(string)
			sum := sha1.Sum([]byte(text))
			sha = hex.EncodeToString(sum[:])
		}
		if name := v.names[sha]; name != "" && err == nil {
			v.mu.Lock()
			v.ran[name] = true
			v.mu.Unlock()
		}
		return err
	}
}

const verbsRan = "verbs that ran: "

// report tells the process that started this one what ran.
func (v *verbCounter) report() {
	if backendName() != "" {
		fmt.Println(verbsRan + strings.Join(slices.Sorted(maps.Keys(v.ran)), " "))
	}
}

// Why a test is not run again on another backend.
const (
	fence       = "fence"
	persistence = "persistence"
	memory      = "memory figures"
	onCluster   = "Cluster"
	ownServers  = "brings real servers of its own, whatever the backend"
	oneServer   = "a proxy, or MONITOR, stands before one real server"
	noServer    = "needs no server"
)

// exempt are the tests that no other backend runs again, by name. Every test
// that is named neither here nor in exemptOn runs on each.
var exempt = map[string]string{
	"TestARestartClosesTheGateUntilItWasChecked": persistence,
	"TestASecondRestartWhileOpeningStaysClosed":  persistence,
	"TestTheScriptsComeBackAfterARestart":        persistence,
	"TestWithoutAppendOnlyFileItWarns":           persistence,
	"TestAPromotedReplicaAndAFailBackAreClosed":  fence,
	"TestFlushAllIsClosed":                       fence,
	"TestRedisIsKilledUnderLoad":                 persistence,
	"TestRedisIsKilledInTheMiddleOfARush":        persistence,
	"TestAServerRolledBackServesNothing":         persistence,
	"TestAServerThatEvictsIsRefused":             memory,
	"TestPopulationsAreTrue":                     memory,
	"TestBudgets":                                memory,
	"TestCluster":                                onCluster,
	"TestTheSuiteOnEveryBackend":                 ownServers,
	"TestTheStandInRunsTheWholeChain":            ownServers,
	"TestAServerThatKeepsItsWordIsTaken":         ownServers,
	"TestReplicas":                               ownServers,
	"TestASilentServerIsUnavailable":             ownServers,
	"TestWithoutRedisNobodyKnowsWhosePayment":    ownServers,
	"TestAnOldVersionIsRefused":                  ownServers,
	"TestEverythingThatIsWrongIsSaidAtOnce":      ownServers,
	"TestReplicasWhoseTermsAreNotTold":           ownServers,
	"TestTheModelNoticesEachMutant":              ownServers,
	"TestTheCheckerNoticesBrokenScripts":         ownServers,
	"TestTheCheckerRefusesWhatNoOrderExplains":   noServer,
	"TestAClientThatMayAskReplicasIsRefused":     noServer,
	"TestScriptsTouchTheDeclaredKeysOnly":        noServer,
	"TestTheContractIsWrittenDown":               noServer,
	"TestTheGateIsLinearizableOverABadNetwork":   oneServer,
}

// exemptOn are those that only one of the backends cannot run.
var exemptOn = map[string]map[string]string{
	standIn: {
		"TestALostStockKeyIsClosedNotNew":  fence,
		"TestAScriptErrorClosesTheSKU":     fence,
		"TestADeletedKeyClosesTheSKU":      fence,
		"TestAClosedSKUHasNoTripwire":      fence,
		"TestARebuildWritesOverWhatItRead": fence,
		"TestAPageOfASurveyIsBounded":      memory, // the stand-in scans a key whole
	},
	cluster: {
		"TestRetriesOfTheClientMoveNothingTwice": oneServer,
		"TestADeadlineBoundsACall":               oneServer,
		"TestThePoolRecoversFromAnOutage":        oneServer,
	},
}

// TestTheSuiteOnEveryBackend (B102) runs every test that is not exempt by name on the
// Cluster and on the stand-in: each must run there and pass, and on each backend
// they must run every verb.
func TestTheSuiteOnEveryBackend(t *testing.T) {
	list, err := exec.Command(os.Args[0], "-test.list=.").Output()
	require.NoError(t, err)
	tests := regexp.MustCompile(`(?m)^Test\w+$`).FindAllString(string(list), -1)
	var verbs []string
	for _, s := range all {
		verbs = append(verbs, s.name)
	}
	slices.Sort(verbs)
	for _, name := range []string{cluster, standIn} {
		t.Run(name, func(t *testing.T) {
			left := maps.Clone(exempt)
			maps.Copy(left, exemptOn[name])
			for test := range left {
				require.Contains(t, tests, test, "an exemption names no test")
			}
			var run []string
			for _, test := range tests {
				if left[test] == "" {
					run = append(run, test)
				}
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^("+strings.Join(run, "|")+")$", "-rapid.nofailfile")
			cmd.Env = append(os.Environ(), backendEnv+"="+name, "HOLDFAST_LONG=")
			raw, err := cmd.CombinedOutput()
			out := string(raw)
			require.NoError(t, err, out)
			for _, test := range run {
				require.Contains(t, out, "--- PASS: "+test+" ", "%s did not run", test)
			}
			require.Contains(t, out, verbsRan+strings.Join(verbs, " ")+"\n")
			t.Logf("%d of %d tests, %d verbs", len(run), len(tests), len(verbs))
		})
	}
}
