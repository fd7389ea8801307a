package stripetest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Mock is Stripe's own stripe-mock, which knows the whole API, refuses what is
// no request of it, and remembers nothing.
type Mock struct {
	URL string
	dir string
	cmd *exec.Cmd
}

// MockKey is a key that stripe-mock takes.
const MockKey = "sk_test_0123456789"

// StartMock builds stripe-mock as dev/stripemock pins it, and starts it on a
// free port of the loopback address.
func StartMock() (*Mock, error) {
	gomod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOMOD: %w", err)
	}
	dir, err := os.MkdirTemp("", "holdfast-stripe-mock-")
	if err != nil {
		return nil, err
	}
	m := &Mock{dir: dir}
	binary := filepath.Join(dir, "stripe-mock")
	pins := filepath.Join(filepath.Dir(strings.TrimSpace(string(gomod))), "dev", "stripemock")
	out, err := exec.Command("go", "build", "-C", pins, "-o", binary, "github.com/stripe/stripe-mock").CombinedOutput()
	if err != nil {
		m.Close()
		return nil, fmt.Errorf("build stripe-mock in %s: %w\n%s", pins, err, out)
	}
	m.cmd = exec.Command(binary, "-http-addr", "127.0.0.1:0")
	stdout, err := m.cmd.StdoutPipe()
	if err == nil {
		err = m.cmd.Start()
	}
	if err == nil {
		m.URL, err = listening(stdout)
	}
	if err != nil {
		m.Close()
		return nil, fmt.Errorf("start stripe-mock: %w", err)
	}
	return m, nil
}

// listening reads the address that stripe-mock prints, and lets it print on.
func listening(stdout io.Reader) (string, error) {
	found := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if _, addr, ok := strings.Cut(lines.Text(), "Listening for HTTP at address: "); ok {
				found <- "http://" + addr
			}
		}
	}()
	select {
	case url := <-found:
		return url, nil
	case <-time.After(30 * time.Second):
		return "", errors.New("no address after 30 s")
	}
}

// Close ends stripe-mock and removes it.
func (m *Mock) Close() {
	if m.cmd != nil && m.cmd.Process != nil {
		m.cmd.Process.Kill()
		m.cmd.Wait()
	}
	os.RemoveAll(m.dir)
}
