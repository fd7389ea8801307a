(function () {
  "use strict";
  var root = document.documentElement, words = document.body.dataset, news = document.getElementById("news");
  var MOST_LOOKS = 40; // without anybody coming back to the page
  var MARKS = [3600, 1800, 900, 600, 300, 180, 120, 60, 30]; // seconds left that are worth saying
  var looks = 0, wait = 0, asking = false, timer, ticker, zero, last;
  root.classList.add("js");

  function main() { return document.querySelector("main"); }
  function say(text) { news.textContent = text; }
  function two(n) { return String(n).padStart(2, "0"); }
  function digits(s) {
    var h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
    return (h ? h + ":" + two(m) : m) + ":" + two(s % 60);
  }
  function spoken(clock, s) {
    var n, key = s >= 7200 ? "hours" : s >= 120 ? "minutes" : s >= 60 ? "minute" : "seconds";
    n = key === "hours" ? Math.floor(s / 3600) : key === "seconds" ? s : Math.floor(s / 60);
    return clock.dataset[key].replace("{n}", n);
  }

  // The phone's own clock may be wrong: what is left was true when the server
  // answered, and only the time since it was asked is measured here. A slow line makes
  // it less than there is, never more.
  function left(clock) { return Math.max(0, Math.ceil((clock.dataset.left - (performance.now() - zero)) / 1000)); }

  function tick() {
    var clock = document.querySelector(".clock");
    if (!clock) return clearInterval(ticker);
    var s = left(clock), shown = clock.querySelector("[aria-hidden]"), told = clock.querySelector(".sr");
    shown.textContent = s >= 172800 ? spoken(clock, s) : digits(s);
    if (!told.textContent || (s >= 60 ? Math.floor(s / 60) !== Math.floor(last / 60) : s === 30)) told.textContent = spoken(clock, s);
    if (last > s) MARKS.forEach(function (mark) { if (last > mark && s <= mark && s > 0) say(spoken(clock, s)); });
    last = s;
    if (s === 0) {
      clearInterval(ticker);
      told.textContent = clock.dataset.over;
      say(clock.dataset.over);
      ask();
    }
  }

  function startClock() {
    var clock = document.querySelector(".clock");
    clearInterval(ticker);
    last = 0;
    if (!clock) return;
    var wrong = Math.abs(Date.now() - performance.now() + zero - Date.parse(clock.dataset.now)) > 90000;
    document.querySelectorAll(".until").forEach(function (el) { el.hidden = wrong; });
    var line = clock.querySelector(".digits"), shown = document.createElement("span"), told = document.createElement("span");
    shown.setAttribute("aria-hidden", "true");
    told.className = "sr";
    line.replaceChildren(shown, told);
    ticker = setInterval(tick, 250);
    tick();
  }

  // In the reader's own way of writing times, when it is of the page's language.
  function localTimes() {
    var own = navigator.language || "", locale = own.slice(0, 2) === root.lang ? own : root.lang;
    document.querySelectorAll("time[datetime]").forEach(function (el) {
      var at = new Date(el.dateTime), shape = { hour: "numeric", minute: "2-digit" };
      if (at.toDateString() !== new Date().toDateString()) { shape.day = "numeric"; shape.month = "long"; }
      el.textContent = at.toLocaleString(locale, shape);
    });
  }

  function offline(yes) {
    var note = document.querySelector(".offline");
    if (!yes && note) note.remove();
    if (!yes || note) return;
    note = document.createElement("p");
    note.className = "offline";
    note.textContent = words.offline;
    main().prepend(note);
    say(words.offline);
  }

  function later(seconds) {
    clearTimeout(timer);
    if (seconds && looks < MOST_LOOKS && !document.hidden) timer = setTimeout(ask, seconds * 1000);
  }

  // Asks the server, which alone knows. What has not changed stays as it is,
  // with the reader's focus and scroll.
  async function ask() {
    if (asking) return;
    asking = true;
    looks++;
    clearTimeout(timer);
    var here = main(), from = here.dataset.from, at = performance.now(), fresh;
    try {
      var answer = await fetch(from, { headers: { Accept: "text/html", "Holdfast-Part": "main" }, cache: "no-store", credentials: "omit" });
      var page = new DOMParser().parseFromString(await answer.text(), "text/html");
      fresh = page.querySelector("main");
      if (!fresh) throw new Error("no page of ours");
    } catch (_) {
      wait = Math.min(60, Math.max(2, wait * 2));
      asking = false;
      offline(true);
      return later(wait);
    }
    asking = false;
    offline(false);
    if (from !== location.pathname) return location.replace(from);
    var clock = document.querySelector(".clock"), newer = fresh.querySelector(".clock");
    zero = at;
    if (fresh.dataset.mark === here.dataset.mark) {
      wait = Math.min(60, Math.max(wait * 1.5, +here.dataset.again || 0));
      if (clock) { clock.dataset.left = newer.dataset.left; clock.dataset.now = newer.dataset.now; startClock(); }
    } else {
      var focused = here.contains(document.activeElement);
      here.replaceWith(document.adoptNode(fresh));
      document.title = page.title;
      wait = +fresh.dataset.again || 0;
      localTimes();
      startClock();
      if (focused) document.querySelector("h1").focus();
      say(document.querySelector("h1").textContent);
    }
    later(wait);
  }

  // On a slow line nobody knows whether a press has arrived: it says so, and a
  // second one does nothing.
  document.addEventListener("submit", function (e) {
    var button = e.target.querySelector("button");
    if (button.getAttribute("aria-disabled") === "true") return e.preventDefault();
    button.setAttribute("aria-disabled", "true");
    button.dataset.label = button.textContent;
    button.textContent = words.wait;
  });
  window.addEventListener("pageshow", function (e) {
    document.querySelectorAll("button[data-label]").forEach(function (button) {
      button.removeAttribute("aria-disabled");
      button.textContent = button.dataset.label;
    });
    if (e.persisted) { looks = 0; ask(); }
  });
  document.addEventListener("visibilitychange", function () {
    if (document.hidden) return clearTimeout(timer);
    looks = 0;
    if (main().dataset.again) ask();
  });
  window.addEventListener("online", function () { if (document.querySelector(".offline")) { looks = 0; ask(); } });

  var came = performance.getEntriesByType("navigation")[0];
  zero = came ? came.requestStart : 0;
  wait = +main().dataset.again || 0;
  localTimes();
  startClock();
  later(wait);
})();
