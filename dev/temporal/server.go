package main

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	clusterName     = "active"
	defaultStore    = "default"
	visibilityStore = "visibility"

	// shards: with one, every workflow waits for the same lock.
	shards = 4
)

// newServer makes a server that is ready to start, with its schema and its
// namespace in the store.
func newServer(o options) (temporal.Server, error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	if err := portIsFree(o.ip, o.port); err != nil {
		return nil, err
	}
	if o.uiPort != 0 {
		if err := portIsFree(o.ip, o.uiPort); err != nil {
			return nil, err
		}
	}
	stores, err := openStores(o.db)
	if err != nil {
		return nil, err
	}
	if err := createNamespace(o, stores[defaultStore].SQL); err != nil {
		return nil, err
	}

	logger := log.NewZapLogger(log.BuildZapLogger(log.Config{Level: o.logLevel, Format: "console"}))
	conf := &config.Config{
		Global: config.Global{Membership: config.Membership{BroadcastAddress: o.ip}},
		Persistence: config.Persistence{
			DefaultStore:     defaultStore,
			VisibilityStore:  visibilityStore,
			NumHistoryShards: shards,
			DataStores:       stores,
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: hostPort(o.ip, o.port)},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: config.ArchivalDisabled},
			Visibility: config.VisibilityArchival{State: config.ArchivalDisabled},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: config.ArchivalDisabled},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: config.ArchivalDisabled},
		}},
		PublicClient: config.PublicClient{HostPort: hostPort(o.ip, o.port)},
		Services:     map[string]config.Service{},
	}
	hosts := map[primitives.ServiceName]static.Hosts{}
	for name, port := range map[primitives.ServiceName]int{
		primitives.FrontendService: o.port,
		primitives.HistoryService:  ports[0],
		primitives.MatchingService: ports[1],
		primitives.WorkerService:   ports[2],
	} {
		conf.Services[string(name)] = config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: o.ip}}
		hosts[name] = static.SingleLocalHost(hostPort(o.ip, port))
	}

	claims, err := authorization.GetClaimMapperFromConfig(&conf.Global.Authorization, logger)
	if err != nil {
		return nil, fmt.Errorf("claim mapper: %w", err)
	}
	return temporal.NewServer(
		temporal.WithConfig(conf),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(hosts),
		temporal.WithLogger(logger),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return claims }),
		temporal.WithDynamicConfigClient(dynamicConfig()),
	)
}

// dynamicConfig lifts the limits that would throttle a flash sale on one
// machine. Limits that also bind in production (signals, updates and events of
// one workflow) keep their defaults.
func dynamicConfig() dynamicconfig.StaticClient {
	const unlimited = 100_000
	return dynamicconfig.StaticClient{
		dynamicconfig.FrontendRPS.Key():                                         unlimited,
		dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Key():                  unlimited,
		dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key():        unlimited,
		dynamicconfig.FrontendMaxConcurrentLongRunningRequestsPerInstance.Key(): unlimited,
		dynamicconfig.FrontendPersistenceMaxQPS.Key():                           unlimited,
		dynamicconfig.HistoryRPS.Key():                                          unlimited,
		dynamicconfig.HistoryPersistenceMaxQPS.Key():                            unlimited,
		dynamicconfig.MatchingRPS.Key():                                         unlimited,
		dynamicconfig.MatchingPersistenceMaxQPS.Key():                           unlimited,
		// One host gains nothing from several partitions of a task queue: a
		// task only takes longer to find its poller.
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,
		// It would ask a server on the internet.
		dynamicconfig.EnableServerVersionCheck.Key(): false,
	}
}

// openStores returns the two stores: SQLite files in dir, or two databases in
// memory when dir is empty. Visibility has its own, because its writes would
// else queue before those of the workflows.
func openStores(dir string) (map[string]config.DataStore, error) {
	stores := map[string]config.DataStore{}
	for _, name := range []string{defaultStore, visibilityStore} {
		sql := &config.SQL{
			PluginName:        sqliteplugin.PluginName,
			DatabaseName:      "holdfast-" + name,
			ConnectAttributes: map[string]string{"mode": "memory", "cache": "shared"},
		}
		if dir != "" {
			path, err := filepath.Abs(filepath.Join(dir, name+".db"))
			if err != nil {
				return nil, err
			}
			// The name becomes part of a URI.
			sql.DatabaseName = (&url.URL{Path: path}).EscapedPath()
			sql.ConnectAttributes = map[string]string{"mode": "rwc", "journal_mode": "wal", "synchronous": "normal"}
			if err := setupFile(path, sql); err != nil {
				return nil, fmt.Errorf("set up %s: %w", path, err)
			}
		}
		stores[name] = config.DataStore{SQL: sql}
	}
	return stores, nil
}

// setupFile writes the schema into a new file. A mark beside it tells a
// finished file from one whose set-up was cut short, which is begun again.
func setupFile(path string, sql *config.SQL) error {
	mark := path + ".ok"
	if _, err := os.Stat(mark); err == nil {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%s exists, but its database does not: remove the folder to start over (%w)", mark, err)
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	if err := sqlite.SetupSchema(sql); err != nil {
		return err
	}
	return os.WriteFile(mark, nil, 0o600)
}

func createNamespace(o options, sql *config.SQL) error {
	ns, err := sqlite.NewNamespaceConfig(clusterName, o.namespace, false, o.attributes)
	if err != nil {
		return fmt.Errorf("namespace %s: %w", o.namespace, err)
	}
	ns.Detail.Config.Retention = durationpb.New(o.retention)
	if err := sqlite.CreateNamespaces(sql, ns); err != nil {
		return fmt.Errorf("namespace %s: %w", o.namespace, err)
	}
	return nil
}

// freePorts returns n ports for the services that only this process talks to.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		// Held until all are drawn, so that no port is drawn twice.
		defer func() { _ = l.Close() }()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

func portIsFree(ip string, port int) error {
	l, err := net.Listen("tcp", hostPort(ip, port))
	if err != nil {
		return err
	}
	return l.Close()
}

func hostPort(ip string, port int) string { return net.JoinHostPort(ip, strconv.Itoa(port)) }
