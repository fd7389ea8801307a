package twiliostub

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twilio/twilio-go/client"
	api "github.com/twilio/twilio-go/rest/api/v2010"
)

const (
	account = "AC00000000000000000000000000000001"
	token   = "token1"
	ada     = "+12025550101"
)

// clientOf is the twilio-go client as its users have it, sent here.
func clientOf(s *Server) *api.ApiService {
	c := &client.Client{Credentials: client.NewCredentials(account, token), HTTPClient: &http.Client{Transport: here{s.URL}}}
	c.SetAccountSid(account)
	return api.NewApiService(client.NewRequestHandler(c))
}

type here struct{ base string }

func (h here) RoundTrip(r *http.Request) (*http.Response, error) {
	base, err := url.Parse(h.base)
	if err != nil {
		return nil, err
	}
	r.URL.Scheme, r.URL.Host = base.Scheme, base.Host
	return http.DefaultTransport.RoundTrip(r)
}

func start(t *testing.T, opts Options) *Server {
	t.Helper()
	opts.AccountSID, opts.AuthToken = account, token
	s, err := Start(opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func send(t *testing.T, c *api.ApiService, to string, more func(*api.CreateMessageParams)) *api.ApiV2010Message {
	t.Helper()
	p := &api.CreateMessageParams{}
	p.SetTo(to).SetFrom("+12025550100").SetBody("hello")
	if more != nil {
		more(p)
	}
	m, err := c.CreateMessage(p)
	require.NoError(t, err)
	return m
}

func TestCreateFetchAndList(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := start(t, Options{Now: func() time.Time { return now }})
	c := clientOf(s)
	m := send(t, c, ada, nil)
	require.Equal(t, Queued, *m.Status)
	require.Nil(t, m.DateSent)
	require.Equal(t, "Sun, 01 Mar 2026 12:00:00 +0000", *m.DateCreated)
	serviced := send(t, c, ada, func(p *api.CreateMessageParams) { p.SetMessagingServiceSid("MG00000000000000000000000000000001") })
	require.Equal(t, Accepted, *serviced.Status)
	send(t, c, "+12025550102", nil)

	now = now.Add(time.Hour)
	_, err := s.Advance(*m.Sid, Sent, 0)
	require.NoError(t, err)
	got, err := c.FetchMessage(*m.Sid, nil)
	require.NoError(t, err)
	require.Equal(t, Sent, *got.Status)
	require.Equal(t, "Sun, 01 Mar 2026 13:00:00 +0000", *got.DateSent)
	_, err = c.FetchMessage("SM0", nil)
	require.ErrorContains(t, err, "20404")

	for name, c := range map[string]struct {
		want []string
		ask  func(p *api.ListMessageParams)
	}{
		"of a number, the newest first": {[]string{*serviced.Sid, *m.Sid}, func(*api.ListMessageParams) {}},
		"sent since":                    {[]string{*m.Sid}, func(p *api.ListMessageParams) { p.SetDateSentAfter(now.Add(-time.Minute)) }},
		"sent later":                    {nil, func(p *api.ListMessageParams) { p.SetDateSentAfter(now.Add(time.Minute)) }},
		"sent before":                   {[]string{*m.Sid}, func(p *api.ListMessageParams) { p.SetDateSentBefore(now) }},
		"sent on the day":               {[]string{*m.Sid}, func(p *api.ListMessageParams) { p.SetDateSent(now.Add(9 * time.Hour)) }},
		"sent the day before":           {nil, func(p *api.ListMessageParams) { p.SetDateSent(now.AddDate(0, 0, -1)) }},
	} {
		p := &api.ListMessageParams{}
		p.SetTo(ada)
		c.ask(p)
		list, err := clientOf(s).ListMessage(p)
		require.NoError(t, err, name)
		var sids []string
		for _, m := range list {
			sids = append(sids, *m.Sid)
		}
		require.Equal(t, c.want, sids, name)
	}
}

func TestPaging(t *testing.T) {
	s := start(t, Options{})
	c := clientOf(s)
	var want []string
	for range 7 {
		want = append([]string{*send(t, c, ada, nil).Sid}, want...)
	}
	for _, size := range []int{1, 3, 7, 50} {
		p := &api.ListMessageParams{}
		p.SetPageSize(size)
		list, err := c.ListMessage(p)
		require.NoError(t, err)
		var got []string
		for _, m := range list {
			got = append(got, *m.Sid)
		}
		require.Equal(t, want, got)
	}
}

func TestWhatTwilioRefuses(t *testing.T) {
	s := start(t, Options{})
	for code, change := range map[string]func(*api.CreateMessageParams){
		"21211": func(p *api.CreateMessageParams) { p.SetTo("12025550101") },
		"21604": func(p *api.CreateMessageParams) { p.SetTo("") },
		"21602": func(p *api.CreateMessageParams) { p.SetBody("") },
		"21603": func(p *api.CreateMessageParams) { p.SetFrom("") },
		"21609": func(p *api.CreateMessageParams) { p.SetStatusCallback("nowhere") },
		"20001": func(p *api.CreateMessageParams) { p.SetValidityPeriod(36001) },
		"21617": func(p *api.CreateMessageParams) { p.SetBody(string(make([]byte, 1601))) },
	} {
		p := &api.CreateMessageParams{}
		p.SetTo(ada).SetFrom("+12025550100").SetBody("hello")
		change(p)
		_, err := clientOf(s).CreateMessage(p)
		require.ErrorContains(t, err, code)
	}
	require.Empty(t, s.Messages())
}

func TestRate(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := start(t, Options{Now: func() time.Time { return now }})
	s.Limit(2)
	c := clientOf(s)
	send(t, c, ada, nil)
	now = now.Add(400 * time.Millisecond)
	send(t, c, ada, nil)
	p := &api.CreateMessageParams{}
	p.SetTo(ada).SetFrom("+12025550100").SetBody("hello")
	_, err := c.CreateMessage(p)
	require.ErrorContains(t, err, "20429")
	now = now.Add(600 * time.Millisecond)
	send(t, c, ada, nil)
	_, err = c.CreateMessage(p)
	require.ErrorContains(t, err, "20429", "within any second, not each")
	require.Equal(t, []string{"POST 201", "POST 201", "POST 429", "POST 201", "POST 429"}, s.Calls())

	s.Limit(0)
	s.Busy(now.Add(time.Minute))
	_, err = c.CreateMessage(p)
	require.ErrorContains(t, err, "20429")
	now = now.Add(time.Minute)
	send(t, c, ada, nil)
}

func TestMessagesGoThroughTheirStates(t *testing.T) {
	type news struct{ sid, state, code string }
	heard := make(chan news, 10)
	validator := client.NewRequestValidator(token)
	var hook *httptest.Server
	hook = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		form := map[string]string{}
		if err := r.ParseForm(); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for name := range r.PostForm {
			form[name] = r.PostForm.Get(name)
		}
		if !validator.Validate(hook.URL+r.RequestURI, form, r.Header.Get("X-Twilio-Signature")) {
			http.Error(w, "forged", http.StatusUnauthorized)
			return
		}
		heard <- news{form["MessageSid"], form["MessageStatus"], form["ErrorCode"]}
	}))
	defer hook.Close()
	told := make(chan Message, 1)
	s := start(t, Options{Follow: []string{Sending, Sent, Delivered}, OnMessage: func(m Message) { told <- m }})
	m := send(t, clientOf(s), ada, func(p *api.CreateMessageParams) { p.SetStatusCallback(hook.URL + "/status?a=b%27c") })
	require.Equal(t, *m.Sid, (<-told).SID)
	for _, state := range []string{Sending, Sent, Delivered} {
		require.Equal(t, news{*m.Sid, state, ""}, <-heard)
	}
	status, err := s.Advance(*m.Sid, Undelivered, 30006)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, news{*m.Sid, Undelivered, "30006"}, <-heard)
	require.False(t, s.Messages()[0].SentAt.IsZero())

	status, _, err = s.Text(hook.URL+"/inbound", ada, "+12025550100", "STOP", "STOP")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status, "inbound texts are signed too")
}

func TestFaults(t *testing.T) {
	s := start(t, Options{})
	c := clientOf(s)
	s.Next(Fault{On: List, Status: 500, Code: 20500}, Fault{On: Create, To: ada, Kept: true, Drop: true})
	send(t, c, "+12025550102", nil)
	p := &api.CreateMessageParams{}
	p.SetTo(ada).SetFrom("+12025550100").SetBody("hello")
	_, err := c.CreateMessage(p)
	require.Error(t, err)
	require.Len(t, s.MessagesTo(ada), 1, "taken, and not answered")
	_, err = c.ListMessage(nil)
	require.ErrorContains(t, err, "20500")
	_, err = c.ListMessage(nil)
	require.NoError(t, err, "each happens once")

	p.SetPathAccountSid("AC2")
	_, err = c.CreateMessage(p)
	require.ErrorContains(t, err, "20003")
}

func TestAnAccountThatIsDown(t *testing.T) {
	s := start(t, Options{})
	c := clientOf(s)
	s.Down(401, 20003)
	p := &api.CreateMessageParams{}
	p.SetTo(ada).SetFrom("+12025550100").SetBody("hello")
	_, err := c.CreateMessage(p)
	require.ErrorContains(t, err, "20003")
	_, err = c.ListMessage(nil)
	require.ErrorContains(t, err, "20003")
	s.Down(0, 0)
	send(t, c, ada, nil)
}
