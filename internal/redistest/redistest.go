// Package redistest starts real Redis servers for tests.
package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Server is a redis-server on a free port of the loopback address, with its
// files in a folder of its own.
type Server struct {
	Addr string
	Dir  string
	args []string
	cmd  *exec.Cmd
}

// Start starts a server with extra command-line arguments, in memory only
// unless they say otherwise. It fails when redis-server is not installed.
func Start(args ...string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "holdfast-redis-")
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", port), Dir: dir, args: append([]string{
		"--bind", "127.0.0.1", "--port", port, "--dir", dir, "--save", "", "--loglevel", "warning",
	}, args...)}
	return s, s.Run()
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// Run starts the server again, on the same port and files, and waits until it
// answers.
func (s *Server) Run() error {
	s.cmd = exec.Command("redis-server", s.args...)
	log, err := os.Create(filepath.Join(s.Dir, "server.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("redis-server does not start (Debian: apt-get install redis-server): %w", err)
	}
	rdb := s.Client()
	defer rdb.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for {
		if err = rdb.Ping(ctx).Err(); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("redis-server on %s does not answer: %w", s.Addr, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Client returns a new client of the server.
func (s *Server) Client() *goredis.Client {
	return goredis.NewClient(&goredis.Options{Addr: s.Addr, ContextTimeoutEnabled: true})
}

// Freeze stops the server where it is: it keeps its connections, takes new ones
// and answers nobody. Only Kill ends it then.
func (s *Server) Freeze() error { return s.cmd.Process.Signal(syscall.SIGSTOP) }

// Kill ends the server as a crash would.
func (s *Server) Kill() {
	if s.cmd != nil && s.cmd.Process != nil {
		s.cmd.Process.Kill()
		s.cmd.Wait()
	}
}

// Close ends the server and removes its folder.
func (s *Server) Close() {
	s.Kill()
	os.RemoveAll(s.Dir)
}
