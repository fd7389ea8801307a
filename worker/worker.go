// Package worker runs the workflows and activities of Holdfast.
package worker

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"holdfast/activities"
	"holdfast/config"
	"holdfast/connect"
	"holdfast/contract"
	"holdfast/events"
	"holdfast/keys"
	"holdfast/launch"
	"holdfast/limits"
	"holdfast/metrics"
	"holdfast/payment"
	"holdfast/quiet"
	"holdfast/redis"
	"holdfast/sms"
	"holdfast/workflows"
)

const (
	// How long a stop waits for what runs of a kind: a text that is being handed over must
	// be answered, or nobody knows whether it was sent. Of the main queue another worker
	// goes on with anything.
	stopTimeout, mainStopTimeout = 15 * time.Second, 5 * time.Second
	// How long a stop lasts at most. The SDK first tells Temporal, for up to ten seconds when
	// that is away, and then waits for workflow tasks, local activities and activities, each
	// as long as above. docker-compose.yml gives it 30 s.
	mostStop = 25 * time.Second
	// A small machine with thousands of timers due at once is slow, not stuck.
	deadlockTimeout = 5 * time.Second
	// Requests for tasks that wait at each queue, of workflows and of activities. Each
	// brings one in a round trip. With the SDK's default of two, holds that are due together
	// wait for one another until the server gives their worker's cache up for lost, which
	// makes each of them dearer; and a server that is busy with a long line hands out
	// eight texts a second, whatever the rate, or steps that an outage has put off.
	pollers = 16
	// Texts that one worker sends at once, if the rate allows as many a second.
	leastTexts, mostTexts = 2, 100
	// reopenSlack is what follows the lease when gate.reopen_wait is 0.
	reopenSlack = 10 * time.Second
)

// Run works until ctx ends, then finishes what it has begun. It fails when
// Temporal cannot be reached, when the namespace lacks a search attribute, or
// when a worker breaks for good.
func Run(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	ring, err := connect.Keys(cfg)
	if err != nil {
		return err
	}
	words, err := newWords(cfg, ring)
	if err != nil {
		return err
	}
	quiet, err := quietHours(cfg)
	if err != nil {
		return err
	}
	port, err := connect.Payment(cfg)
	if err != nil {
		return err
	}
	shop, err := connect.Events(cfg)
	if err != nil {
		return err
	}
	payloads, err := connect.Codec(cfg)
	if err != nil {
		return err
	}
	fatal := make(chan error, 5) // of three queues, Redis' late refusal and the listener
	counts := metrics.New()
	counts.ForWorker()
	desk := &ops{log: log, metrics: counts.Handler()}
	stopDesk, err := desk.serve(cfg.Worker.OpsAddr, fatal)
	if err != nil {
		return err
	}
	defer stopDesk()
	rdb, err := connect.Redis(cfg)
	if err != nil {
		return err
	}
	defer rdb.Close()
	sender, err := newSender(cfg, limits.New(rdb), log)
	if err != nil {
		return err
	}
	watched := &sms.Watched{Sender: sender, Log: log}
	texts := textsState{stopped: watched.Stopped}
	if l, ok := sender.(*sms.Limited); ok {
		texts.today = l.Today
	}
	desk.texts.Store(&texts)
	answered, err := connect.CheckRedis(ctx, cfg, rdb, log)
	if err != nil {
		return err
	}
	gate := connect.Gate(cfg, rdb, log, connect.Observed(counts))
	c, err := connect.Temporal(ctx, cfg, log, connect.Metered(counts.Temporal()))
	if err != nil {
		return err
	}
	defer c.Close()
	namespace, err := connect.Namespace(cfg)
	if err != nil {
		return err
	}
	if err := checkSearchAttributes(ctx, c.OperatorService(), namespace); err != nil {
		return err
	}

	l := launch.New(c)
	var background sync.WaitGroup
	defer background.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	background.Go(func() { wakeBooks(ctx, gate, l, log) })
	background.Go(func() {
		counts.Watch(ctx, metrics.Watch{Books: gate, Named: cfg.Metrics.SKUs, TextsToday: texts.today, Log: log, Rang: func(ctx context.Context, sku string, rung contract.Rung) error {
			return l.Signal(ctx, contract.StockWorkflowID(sku), contract.SignalTripwire, rung)
		}})
	})
	w := newWorkers(c, cfg, gate, l, ring, counts.Sender(watched), words, quiet, port, shop, fatal)
	w.all[0].RegisterActivity(newPasses(c, cfg, gate, l, payloads, counts, ring))
	background.Go(func() { keepSchedule(ctx, c.ScheduleClient(), log) })
	if cfg.Worker.BuildID != "" {
		background.Go(func() {
			sayVersion(ctx, c.WorkerDeploymentClient().GetHandle(cfg.Worker.Deployment), cfg, namespace, log)
		})
	}
	if !answered {
		background.Go(func() {
			if err := connect.CheckRedisLater(ctx, rdb, log); err != nil {
				fatal <- err
			}
		})
	}
	context.AfterFunc(ctx, func() { desk.stopping.Store(true) })
	polls := func() {
		desk.peers.Store(&peers{
			redis:    func(ctx context.Context) error { return rdb.Ping(ctx).Err() },
			temporal: func(ctx context.Context) error { _, err := c.CheckHealth(ctx, nil); return err },
		})
	}
	return work(ctx, w, polls, log)
}

// newSender answers the sender of texts; one whose texts cost money keeps to the
// limits.
func newSender(cfg *config.Config, meter sms.Meter, log *slog.Logger) (sms.Sender, error) {
	switch cfg.SMS.Provider {
	case "twilio":
		t := cfg.SMS.Twilio
		sender, err := sms.NewTwilio(sms.TwilioAccount{
			AccountSID: t.AccountSID, AuthToken: t.AuthToken, From: t.From, MessagingService: t.MessagingService, BaseURL: t.BaseURL,
			StatusCallback: cfg.HTTP.PublicURL + sms.StatusPath,
		})
		return &sms.Limited{Sender: sender, Meter: meter, PerSecond: cfg.SMS.SegmentsPerSecond, ADay: int64(cfg.SMS.SegmentsADay), Log: log}, err
	case "console":
		return sms.NewConsole(os.Stdout, cfg.SMS.Outbox)
	default:
		return nil, fmt.Errorf("sms.provider is %q: set twilio or console", cfg.SMS.Provider)
	}
}

// newWords tries the words with links as long as they get.
func newWords(cfg *config.Config, ring *keys.Ring) (*sms.Words, error) {
	token, err := ring.Token(ring.HoldID("any", "any", "any"), time.Now())
	if err != nil {
		return nil, err
	}
	longest := cfg.HTTP.PublicURL + "/r/" + token
	if place := cfg.HTTP.PublicURL + "/w/" + ring.NewEntryID("any"); len(place) > len(longest) {
		longest = place
	}
	return sms.LoadWords(sms.WordsOptions{Shop: cfg.Shop.Name, Locale: cfg.Shop.Locale, Folder: cfg.SMS.Words, LongestLink: longest})
}

func quietHours(cfg *config.Config) (activities.QuietHours, error) {
	hours, err := quiet.New(cfg.Quiet.From, cfg.Quiet.To, cfg.Quiet.Zone)
	if err != nil {
		return activities.QuietHours{}, fmt.Errorf("quiet.from, quiet.to, quiet.zone: %w", err)
	}
	return activities.QuietHours{Hours: hours, MaxWait: cfg.Quiet.MaxWait}, nil
}

// workers are the queues' workers. What ends them arrives in fatal.
type workers struct {
	all   []worker.Worker
	fatal chan error
}

func newWorkers(c client.Client, cfg *config.Config, gate *redis.Gate, l *launch.Launcher, ring *keys.Ring, sender sms.Sender, words *sms.Words, quiet activities.QuietHours, port payment.Port, shop *events.Sender, fatal chan error) workers {
	w := workers{fatal: fatal}
	opts := workerOptions(cfg)
	opts.OnFatalError = func(err error) { w.fatal <- err }
	guard := newGuard(cfg, l)

	mainOpts := opts
	mainOpts.WorkerStopTimeout = mainStopTimeout
	main := worker.New(c, contract.TaskQueue, mainOpts)
	workflows.Register(main)
	main.RegisterActivity(&activities.Holds{Guard: guard, Gate: gate, Payments: l})
	main.RegisterActivity(&activities.Entries{Guard: guard, Gate: gate})
	main.RegisterActivity(&activities.Claims{Entries: l})
	main.RegisterActivity(&activities.Stock{Guard: guard, Gate: gate, Entries: l, Keys: ring, PauseOnTrip: cfg.Tripwire.Pause})
	main.RegisterActivity(&activities.Refunds{Port: port, Tell: cfg.Events.On()})
	main.RegisterActivity(&activities.Attempts{Port: port})
	main.RegisterActivity(&activities.EventStarts{Owners: l})
	main.RegisterActivity(&activities.OptOuts{Guard: guard, Gate: gate})
	main.RegisterActivity(&activities.Reconciles{Guard: guard, Gate: gate, Books: l, Workflows: c})

	tells := newTeller(c, cfg, opts, shop)

	opts.DisableWorkflowWorker = true
	atOnce := min(max(leastTexts, int(cfg.SMS.SegmentsPerSecond)), mostTexts)
	opts.MaxConcurrentActivityTaskPollers = min(atOnce, pollers)
	if cfg.SMS.Provider == "twilio" {
		// The queue counts texts, the provider segments: the queue keeps to the
		// rate of texts of one segment, the sender to the rate. A text that waits
		// for its turn is told already, so only few may.
		opts.TaskQueueActivitiesPerSecond = cfg.SMS.SegmentsPerSecond
		opts.MaxConcurrentActivityExecutionSize = atOnce
	}
	texts := worker.New(c, contract.SMSTaskQueue, opts)
	texts.RegisterActivity(&activities.Texts{
		Guard: guard, Gate: gate, Sender: sender, OptOuts: l, Entries: l, Persons: ring, Links: ring, Words: words, PublicURL: cfg.HTTP.PublicURL, Quiet: quiet,
	})
	w.all = []worker.Worker{main, texts, tells}
	return w
}

func workerOptions(cfg *config.Config) worker.Options {
	return worker.Options{
		DisableRegistrationAliasing: true,
		WorkerStopTimeout:           stopTimeout,
		DeadlockDetectionTimeout:    deadlockTimeout,
		DeploymentOptions:           deploymentOptions(cfg),

		MaxConcurrentWorkflowTaskPollers:        pollers,
		MaxConcurrentActivityTaskPollers:        pollers,
		MaxConcurrentWorkflowTaskExecutionSize:  cfg.Worker.MaxTasks,
		MaxConcurrentLocalActivityExecutionSize: cfg.Worker.MaxTasks,
		MaxConcurrentActivityExecutionSize:      cfg.Worker.MaxActivities,
	}
}

func newGuard(cfg *config.Config, l *launch.Launcher) activities.Guard {
	return activities.Guard{Waker: l, ReopenSeconds: reopenSeconds(cfg), Tell: cfg.Events.On()}
}

// newTeller makes the worker of the events, whose number at once is bounded: an
// endpoint that answers nobody costs the holds nothing.
func newTeller(c client.Client, cfg *config.Config, opts worker.Options, shop *events.Sender) worker.Worker {
	opts.MaxConcurrentActivityExecutionSize = cfg.Events.Concurrency
	tells := worker.New(c, contract.EventsTaskQueue, opts)
	workflows.Register(tells)
	deliveries := &activities.Deliveries{}
	if shop != nil {
		deliveries.Sender = shop
	}
	tells.RegisterActivity(deliveries)
	return tells
}

// reopenSeconds rounds up: a gate must not be checked before its leases ended.
func reopenSeconds(cfg *config.Config) int64 {
	wait := cfg.Gate.ReopenWait
	if wait == 0 {
		wait = cfg.Gate.Lease + reopenSlack
	}
	return int64((wait + time.Second - 1) / time.Second)
}

// work calls polls when all workers have started.
func work(ctx context.Context, w workers, polls func(), log *slog.Logger) error {
	var started []worker.Worker
	defer func() {
		var stops sync.WaitGroup
		for _, one := range started {
			stops.Go(one.Stop)
		}
		stopped := make(chan struct{})
		go func() {
			stops.Wait()
			close(stopped)
		}()
		select {
		case <-stopped:
		case <-time.After(mostStop):
			log.Warn("worker ends before all that it had begun has: another one goes on with it", "after", mostStop)
		}
	}()
	for _, one := range w.all {
		if err := one.Start(); err != nil {
			return fmt.Errorf("start worker: %w", err)
		}
		started = append(started, one)
	}
	polls()
	log.Info("worker runs", "queues", []string{contract.TaskQueue, contract.SMSTaskQueue, contract.EventsTaskQueue})
	select {
	case <-ctx.Done():
		log.Info("worker stops")
		return nil
	case err := <-w.fatal:
		return fmt.Errorf("worker broke: %w", err)
	}
}
