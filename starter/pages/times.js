document.querySelectorAll("time[datetime]").forEach(function (el) {
  var until = new Date(el.dateTime);
  var shape = { hour: "numeric", minute: "2-digit" };
  if (until.toDateString() !== new Date().toDateString()) {
    shape.day = "numeric";
    shape.month = "long";
  }
  el.textContent = until.toLocaleString([], shape);
  var out = document.createElement("span");
  el.after(out);
  function two(n) { return String(n).padStart(2, "0"); }
  function show() {
    var left = Math.max(0, Math.ceil((until - Date.now()) / 1000));
    var hours = Math.floor(left / 3600), minutes = Math.floor(left / 60) % 60;
    if (left === 0) out.textContent = " (now)";
    else if (hours >= 24) out.textContent = "";
    else out.textContent = " (" + (hours ? hours + ":" + two(minutes) : minutes) + ":" + two(left % 60) + " left)";
  }
  show();
  setInterval(show, 1000);
});
