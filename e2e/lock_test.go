package e2e

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// lock is the lock of a writer on each SQLite database of a folder: whoever writes to
// one waits, and is refused in the end. In the file beside a database in WAL mode it is
// the byte 120.
type lock struct{ files []*os.File }

func newLock(t *testing.T, dir string) *lock {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*-shm"))
	require.NoError(t, err)
	require.NotEmpty(t, names, "no database in WAL mode in %s", dir)
	l := &lock{}
	for _, name := range names {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		require.NoError(t, err)
		t.Cleanup(func() { f.Close() }) // and with it the lock
		l.files = append(l.files, f)
	}
	return l
}

func (l *lock) set(kind int16) (err error) {
	for _, f := range l.files {
		err = errors.Join(err, syscall.FcntlFlock(f.Fd(), syscall.F_SETLKW, &syscall.Flock_t{Type: kind, Whence: io.SeekStart, Start: 120, Len: 1}))
	}
	return err
}

func (l *lock) take() error { return l.set(syscall.F_WRLCK) }
func (l *lock) give() error { return l.set(syscall.F_UNLCK) }
