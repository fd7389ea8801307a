package quiet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/quiet"
)

const minuteForm = "2006-01-02 15:04"

func instant(t *testing.T, s string) time.Time {
	at, err := time.Parse(minuteForm, s)
	require.NoError(t, err)
	return at
}

const awake = ""

// B87, B88: each instant is written in UTC; awake says that it is not quiet then.
func TestQuietHours(t *testing.T) {
	for _, hours := range []struct {
		what, zone, from, to string
		until                map[string]string // at an instant of UTC
	}{
		{"a night before the clocks go forward", "America/New_York", "21:00", "09:00", map[string]string{
			"2027-03-14 01:59": awake, // 20:59 EST
			"2027-03-13 14:00": awake,
			"2027-03-14 02:00": "2027-03-14 13:00",
			"2027-03-14 06:59": "2027-03-14 13:00",
			"2027-03-14 07:00": "2027-03-14 13:00", // 03:00 EDT
			"2027-03-14 12:59": "2027-03-14 13:00",
			"2027-03-14 13:00": awake,
			"2027-03-15 01:00": "2027-03-15 13:00",
		}},
		{"they begin in the hour that is left out", "America/New_York", "02:30", "07:00", map[string]string{
			"2027-03-14 06:59": awake,
			"2027-03-14 07:00": "2027-03-14 11:00",
			"2027-03-14 10:59": "2027-03-14 11:00",
			"2027-03-14 11:00": awake,
		}},
		{"they end in the hour that is left out", "America/New_York", "22:00", "02:30", map[string]string{
			"2027-03-14 06:30": "2027-03-14 07:00",
			"2027-03-14 06:59": "2027-03-14 07:00",
			"2027-03-14 07:00": awake,
			"2027-03-15 06:29": "2027-03-15 06:30",
		}},
		{"they are in the hour that is left out", "America/New_York", "02:15", "02:45", map[string]string{
			"2027-03-14 06:59": awake,
			"2027-03-14 07:00": awake,
			"2027-03-14 07:20": awake,
			"2027-03-15 06:20": "2027-03-15 06:45",
		}},
		{"a night in which the clocks go back", "America/New_York", "21:00", "09:00", map[string]string{
			"2027-11-07 00:59": awake,
			"2027-11-07 01:00": "2027-11-07 14:00",
			"2027-11-07 05:30": "2027-11-07 14:00", // 01:30 EDT
			"2027-11-07 06:30": "2027-11-07 14:00", // 01:30 EST
			"2027-11-07 13:59": "2027-11-07 14:00",
			"2027-11-07 14:00": awake,
		}},
		{"they begin in the hour that comes twice", "America/New_York", "01:30", "07:00", map[string]string{
			"2027-11-07 05:29": awake,
			"2027-11-07 05:30": "2027-11-07 12:00",
			"2027-11-07 06:00": "2027-11-07 12:00", // 01:00 EST: nobody is woken for half an hour
			"2027-11-07 06:29": "2027-11-07 12:00",
			"2027-11-07 06:30": "2027-11-07 12:00",
			"2027-11-07 12:00": awake,
		}},
		{"they end in the hour that comes twice", "America/New_York", "22:00", "01:30", map[string]string{
			"2027-11-07 05:29": "2027-11-07 06:30",
			"2027-11-07 05:30": "2027-11-07 06:30",
			"2027-11-07 06:00": "2027-11-07 06:30",
			"2027-11-07 06:29": "2027-11-07 06:30",
			"2027-11-07 06:30": awake,
		}},
		{"they are in the hour that comes twice", "America/New_York", "01:15", "01:45", map[string]string{
			"2027-11-07 05:14": awake,
			"2027-11-07 05:15": "2027-11-07 05:45",
			"2027-11-07 05:45": awake,
			"2027-11-07 06:00": awake,
			"2027-11-07 06:15": "2027-11-07 06:45",
			"2027-11-07 06:45": awake,
		}},
		{"London in spring", "Europe/London", "22:00", "08:00", map[string]string{
			"2027-03-27 21:59": awake,
			"2027-03-27 22:00": "2027-03-28 07:00",
			"2027-03-28 00:59": "2027-03-28 07:00",
			"2027-03-28 01:00": "2027-03-28 07:00",
			"2027-03-28 07:00": awake,
			"2027-03-28 21:00": "2027-03-29 07:00",
		}},
		{"London in spring, from the hour that is left out", "Europe/London", "01:30", "06:00", map[string]string{
			"2027-03-28 00:59": awake,
			"2027-03-28 01:00": "2027-03-28 05:00",
			"2027-03-28 05:00": awake,
		}},
		{"London in spring, to the hour that is left out", "Europe/London", "23:00", "01:30", map[string]string{
			"2027-03-27 23:00": "2027-03-28 01:00",
			"2027-03-28 00:59": "2027-03-28 01:00",
			"2027-03-28 01:00": awake,
		}},
		{"London in autumn", "Europe/London", "22:00", "08:00", map[string]string{
			"2027-10-30 20:59": awake,
			"2027-10-30 21:00": "2027-10-31 08:00",
			"2027-10-31 00:30": "2027-10-31 08:00",
			"2027-10-31 01:30": "2027-10-31 08:00",
			"2027-10-31 08:00": awake,
		}},
		{"London in autumn, from the hour that comes twice", "Europe/London", "01:30", "06:00", map[string]string{
			"2027-10-31 00:29": awake,
			"2027-10-31 00:30": "2027-10-31 06:00",
			"2027-10-31 01:00": "2027-10-31 06:00",
			"2027-10-31 06:00": awake,
		}},
		{"London in autumn, to the hour that comes twice", "Europe/London", "23:00", "01:30", map[string]string{
			"2027-10-31 00:29": "2027-10-31 01:30",
			"2027-10-31 00:30": "2027-10-31 01:30",
			"2027-10-31 01:30": awake,
		}},
		{"Lord Howe goes back by half an hour", "Australia/Lord_Howe", "21:00", "08:00", map[string]string{
			"2027-04-03 09:59": awake,
			"2027-04-03 10:00": "2027-04-03 21:30",
			"2027-04-03 14:59": "2027-04-03 21:30", // 01:59 at +11:00
			"2027-04-03 15:00": "2027-04-03 21:30", // 01:30 at +10:30
			"2027-04-03 21:30": awake,
			"2027-04-04 10:29": awake,
			"2027-04-04 10:30": "2027-04-04 21:30",
		}},
		{"Lord Howe, to the half hour that comes twice", "Australia/Lord_Howe", "21:00", "01:45", map[string]string{
			"2027-04-03 14:44": "2027-04-03 15:15",
			"2027-04-03 14:45": "2027-04-03 15:15",
			"2027-04-03 15:14": "2027-04-03 15:15",
			"2027-04-03 15:15": awake,
		}},
		{"Lord Howe, from the half hour that comes twice", "Australia/Lord_Howe", "01:45", "08:00", map[string]string{
			"2027-04-03 14:44": awake,
			"2027-04-03 14:45": "2027-04-03 21:30",
			"2027-04-03 15:00": "2027-04-03 21:30",
			"2027-04-03 15:15": "2027-04-03 21:30",
			"2027-04-03 21:30": awake,
		}},
		{"Lord Howe, from the half hour that is left out", "Australia/Lord_Howe", "02:15", "08:00", map[string]string{
			"2027-10-02 15:29": awake,
			"2027-10-02 15:30": "2027-10-02 21:00",
			"2027-10-02 21:00": awake,
		}},
		{"within a day, in UTC", "UTC", "12:00", "13:00", map[string]string{
			"2027-05-01 11:59": awake,
			"2027-05-01 12:00": "2027-05-01 13:00",
			"2027-05-01 13:00": awake,
		}},
		{"none", "America/New_York", "09:00", "09:00", map[string]string{"2027-03-14 13:00": awake, "2027-03-14 05:00": awake}},
		{"none, and no zone", "", "00:00", "00:00", map[string]string{"2027-03-14 00:00": awake}},
	} {
		t.Run(hours.what, func(t *testing.T) {
			h, err := quiet.New(hours.from, hours.to, hours.zone)
			require.NoError(t, err)
			require.Equal(t, hours.from != hours.to, h.On())
			for now, want := range hours.until {
				until, is := h.Until(instant(t, now))
				got := awake
				if is {
					got = until.Format(minuteForm)
					require.Equal(t, time.UTC, until.Location())
					require.Zero(t, until.Nanosecond()+until.Second())
				}
				require.Equal(t, want, got, "at %s UTC", now)
			}
		})
	}
}

func TestQuietHoursToTheNanosecond(t *testing.T) {
	h, err := quiet.New("22:00", "08:00", "Europe/London")
	require.NoError(t, err)
	end := time.Date(2027, 1, 2, 8, 0, 0, 0, time.UTC)
	until, is := h.Until(end.Add(-1))
	require.True(t, is)
	require.Equal(t, end, until)
	_, is = h.Until(end)
	require.False(t, is)
	_, is = h.Until(end.Add(14*time.Hour - 1))
	require.False(t, is)
	_, is = (quiet.Hours{}).Until(end)
	require.False(t, is, "the zero value is never quiet")
}

func TestQuietHoursThatAreNone(t *testing.T) {
	for _, bad := range [][3]string{
		{"", "08:00", "UTC"},
		{"22:00", "24:00", "UTC"},
		{"9:00", "10:00", "UTC"},
		{"22:00:00", "08:00", "UTC"},
		{"10pm", "08:00", "UTC"},
		{"22:60", "08:00", "UTC"},
		{"08:00", "07:59", "UTC"},
		{"08:00", "05:01", "UTC"},
		{"22:00", "08:00", ""},
		{"22:00", "08:00", "Local"},
		{"22:00", "08:00", "EST"},
		{"22:00", "08:00", "Europe/Londn"},
		{"22:00", "08:00", "../etc/passwd"},
		{"22:00", "08:00", "+01:00"},
	} {
		_, err := quiet.New(bad[0], bad[1], bad[2])
		require.Error(t, err, "%q", bad)
	}
}

// What holds at every instant: the end comes after now and soon, and it is not
// quiet then; up to it all is quiet; what the clock shows within the hours is quiet,
// and what it shows outside of them only where it was put back.
func TestQuietHoursAlwaysEnd(t *testing.T) {
	zones := []string{
		"America/New_York", "America/Los_Angeles", "Europe/London", "Europe/Berlin", "Australia/Lord_Howe", "Australia/Sydney",
		"America/St_Johns", "Africa/Casablanca", "Asia/Kolkata", "Asia/Kathmandu", "Pacific/Apia", "America/Sao_Paulo", "UTC",
	}
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		place, err := quiet.Zone(zone)
		require.NoError(t, err)
		now := time.Unix(rapid.Int64Range(1_262_304_000, 2_524_608_000).Draw(t, "at"), 0) // 2010 to 2050
		if rapid.Bool().Draw(t, "near a change") {
			if _, change := now.In(place).ZoneBounds(); !change.IsZero() {
				now = change.Add(time.Duration(rapid.Int64Range(-7200, 7200).Draw(t, "from the change")) * time.Second)
			}
		}
		clock := func(name string) string {
			// Half of them near the hours at which clocks are changed.
			minute := rapid.OneOf(rapid.IntRange(0, 239), rapid.IntRange(0, 1439)).Draw(t, name)
			return fmt.Sprintf("%02d:%02d", minute/60, minute%60)
		}
		from, to := clock("from"), clock("to")
		h, err := quiet.New(from, to, zone)
		if err != nil {
			t.Skip("all day")
		}
		shows := now.In(place).Format("15:04")
		within := from <= shows && shows < to
		if from > to {
			within = from <= shows || shows < to
		}
		until, is := h.Until(now)
		if within {
			require.True(t, is, "the clock shows %s", shows)
		}
		if !is {
			return
		}
		require.True(t, until.After(now))
		require.LessOrEqual(t, until.Sub(now), 25*time.Hour)
		_, still := h.Until(until)
		require.False(t, still)
		for at := now; at.Before(until); at = at.Add(7 * time.Minute) {
			same, is := h.Until(at)
			require.True(t, is)
			require.Equal(t, until, same)
		}
		if !within {
			_, was := now.Add(-time.Hour).In(place).Zone()
			_, becomes := now.Add(time.Hour).In(place).Zone()
			require.Less(t, becomes, was, "the clock shows %s", shows)
		}
	})
}
