document.querySelectorAll("time[data-until]").forEach(function (el) {
  var until = Date.parse(el.dateTime);
  var out = document.createElement("span");
  el.after(out);
  function show() {
    var left = Math.max(0, Math.ceil((until - Date.now()) / 1000));
    var rest = String(left % 60).padStart(2, "0");
    out.textContent = left > 0 ? " (" + Math.floor(left / 60) + ":" + rest + " left)" : " (now)";
  }
  show();
  setInterval(show, 1000);
});
