package worker

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc"

	"holdfast/activities"
	"holdfast/config"
	"holdfast/contract"
	"holdfast/internal/twiliostub"
	"holdfast/keys"
	"holdfast/launch"
	"holdfast/payment"
	"holdfast/redis"
	"holdfast/sms"
)

type attributesOf map[string]enumspb.IndexedValueType

func (a attributesOf) ListSearchAttributes(_ context.Context, in *operatorservice.ListSearchAttributesRequest, _ ...grpc.CallOption) (*operatorservice.ListSearchAttributesResponse, error) {
	if in.GetNamespace() != "shop" {
		return nil, errors.New("unexpected namespace " + in.GetNamespace())
	}
	return &operatorservice.ListSearchAttributesResponse{CustomAttributes: a}, nil
}

// B115, without a server; with one: TestANamespaceWithoutSearchAttributesIsRefused.
func TestSearchAttributesAreChecked(t *testing.T) {
	all := attributesOf{
		contract.SKUAttribute:   enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST,
		contract.StateAttribute: enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	}
	require.NoError(t, checkSearchAttributes(t.Context(), all, "shop"))

	err := checkSearchAttributes(t.Context(), attributesOf{}, "shop")
	require.ErrorContains(t, err, "temporal operator search-attribute create --namespace shop --name HoldfastSku --type KeywordList")
	require.ErrorContains(t, err, "temporal operator search-attribute create --namespace shop --name HoldfastState --type Keyword")

	all[contract.SKUAttribute] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	err = checkSearchAttributes(t.Context(), all, "shop")
	require.ErrorContains(t, err, "HoldfastSku has type Keyword, it must be KeywordList")
	require.NotContains(t, err.Error(), contract.StateAttribute)

	require.ErrorContains(t, checkSearchAttributes(t.Context(), all, "other"), `namespace "other"`)
}

func TestWorkersRegisterEverythingOnce(t *testing.T) {
	c, err := client.NewLazyClient(client.Options{})
	require.NoError(t, err)
	defer c.Close()
	require.NotPanics(t, func() {
		w := newWorkers(c, &config.Config{}, redis.New(nil, redis.Options{}), launch.New(c), &keys.Ring{}, &sms.Console{}, &sms.Words{}, activities.QuietHours{}, payment.None(), nil, nil)
		require.Len(t, w.all, 3)
	})
}

func TestABrokenWorkerStopsTheProcess(t *testing.T) {
	broke := workers{fatal: make(chan error, 1)}
	broke.fatal <- errors.New("namespace is gone")
	require.ErrorContains(t, work(t.Context(), broke, func() {}, slog.New(slog.DiscardHandler)), "namespace is gone")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, work(ctx, workers{}, func() {}, slog.New(slog.DiscardHandler)))
}

// stuck is a worker whose tasks do not come to their end.
type stuck struct {
	worker.Worker
	ends <-chan struct{}
}

func (stuck) Start() error { return nil }
func (s stuck) Stop()      { <-s.ends }

// Whoever stops a process kills it after a while, and a worker that is cut off from
// everything must have ended by itself before.
func TestAStopEndsThoughATaskDoesNot(t *testing.T) {
	for name, c := range map[string]struct{ tasks, stop time.Duration }{
		"it ends": {3 * time.Second, 3 * time.Second}, "it does not": {time.Hour, mostStop},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ends := make(chan struct{})
				time.AfterFunc(c.tasks, func() { close(ends) })
				ctx, cancel := context.WithCancel(t.Context())
				w := workers{all: []worker.Worker{stuck{ends: ends}, stuck{ends: ends}}, fatal: make(chan error)}
				began := time.Now()
				require.NoError(t, work(ctx, w, cancel, slog.New(slog.DiscardHandler)))
				require.Equal(t, c.stop, time.Since(began))
				<-ends
			})
		})
	}
}

func TestSenderIsNeverGuessed(t *testing.T) {
	var cfg config.Config
	_, err := newSender(&cfg, nil, nil)
	require.ErrorContains(t, err, "sms.provider")
	cfg.SMS.Provider = "twilio"
	_, err = newSender(&cfg, nil, nil)
	require.ErrorContains(t, err, "account_sid")
	cfg.SMS.Provider = "console"
	sender, err := newSender(&cfg, nil, nil)
	require.NoError(t, err)
	require.IsType(t, &sms.Console{}, sender)

	cfg.SMS = config.SMS{Provider: "twilio", SegmentsPerSecond: 3, SegmentsADay: 40, Twilio: config.Twilio{AccountSID: "AC1", AuthToken: "token1", From: "+12025550100"}}
	sender, err = newSender(&cfg, nil, nil)
	require.NoError(t, err)
	require.IsType(t, &sms.Twilio{}, sender.(*sms.Limited).Sender)
	require.Equal(t, []any{3.0, int64(40)}, []any{sender.(*sms.Limited).PerSecond, sender.(*sms.Limited).ADay}, "what costs money has limits")
}

func TestTwilioSendsForTheMessagingService(t *testing.T) {
	stub, err := twiliostub.Start(twiliostub.Options{})
	require.NoError(t, err)
	defer stub.Close()
	cfg := config.Config{HTTP: config.HTTP{PublicURL: "https://door.example"}, SMS: config.SMS{Provider: "twilio", SegmentsPerSecond: 3, Twilio: config.Twilio{
		AccountSID: "AC00000000000000000000000000000001", AuthToken: "token", MessagingService: "MG00000000000000000000000000000001", BaseURL: stub.URL,
	}}}
	sender, err := newSender(&cfg, nil, nil)
	require.NoError(t, err)
	_, err = sender.(*sms.Limited).Sender.Send(t.Context(), sms.Text{To: "+12025550101", Body: "hello", EntryID: "entry_x", Cause: sms.CauseJoined})
	require.NoError(t, err)
	require.Len(t, stub.Messages(), 1)
	require.Equal(t, []string{"MG00000000000000000000000000000001", ""}, []string{stub.Messages()[0].MessagingService, stub.Messages()[0].From})
}

func TestAWorkerTakesNoMoreAtOnceThanItMay(t *testing.T) {
	opts := workerOptions(&config.Config{Worker: config.Worker{MaxTasks: 7, MaxActivities: 9, Deployment: "shop", BuildID: "v2"}})
	require.Equal(t, []int{7, 7, 9}, []int{
		opts.MaxConcurrentWorkflowTaskExecutionSize, opts.MaxConcurrentLocalActivityExecutionSize, opts.MaxConcurrentActivityExecutionSize,
	})
	require.Equal(t, "shop", opts.DeploymentOptions.Version.DeploymentName)
}

func TestReopenWaitRoundsUp(t *testing.T) {
	for want, gate := range map[int64]config.Gate{
		20: {Lease: 10 * time.Second},
		13: {Lease: 2500 * time.Millisecond},
		5:  {Lease: 10 * time.Second, ReopenWait: 4001 * time.Millisecond},
	} {
		require.Equal(t, want, reopenSeconds(&config.Config{Gate: gate}))
	}
}

// shelf is a Redis with two SKUs that fails at first, and the books' doorbell.
type shelf struct {
	failures int
	rung     []string
}

func (s *shelf) SKUs(context.Context) ([]string, error) {
	if s.failures > 0 {
		s.failures--
		return nil, redis.ErrUnavailable
	}
	return []string{"CHAIR", "TEE"}, nil
}

func (s *shelf) Wake(_ context.Context, sku string) error {
	s.rung = append(s.rung, sku)
	return nil
}

func TestBooksAreWokenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{failures: 3}
		began := time.Now()
		wakeBooks(t.Context(), s, s, slog.New(slog.DiscardHandler))
		require.Equal(t, []string{"CHAIR", "TEE"}, s.rung)
		require.Equal(t, 3*booksRetry, time.Since(began))
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &shelf{failures: 1}
	wakeBooks(ctx, s, s, slog.New(slog.DiscardHandler))
	require.Empty(t, s.rung)
}

func TestWordsAreTriedAtTheStart(t *testing.T) {
	ring, err := keys.New([]byte("a person secret of tests"), []byte("a main secret of tests"), []keys.LinkKey{{ID: 1, Secret: []byte("a link secret of tests")}})
	require.NoError(t, err)
	cfg := config.Config{Shop: config.Shop{Name: "Nordlicht", Locale: "en"}, HTTP: config.HTTP{PublicURL: "https://nordlicht.example"}}
	_, err = newWords(&cfg, ring)
	require.NoError(t, err)
	cfg.HTTP.PublicURL += "/" + strings.Repeat("wait", 50)
	_, err = newWords(&cfg, ring)
	require.ErrorContains(t, err, "http.public_url")
	require.ErrorContains(t, err, cfg.HTTP.PublicURL+"/r/", "with a link as long as it gets")
	cfg.HTTP.PublicURL, cfg.SMS.Words = "https://nordlicht.example", "/nowhere"
	_, err = newWords(&cfg, ring)
	require.ErrorContains(t, err, "sms.words")
}
