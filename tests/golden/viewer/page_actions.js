// Put behind the page of `export --to html` by its test: does what a user does and writes what the page then shows.
{
    const key = (k, target) => (target || window).dispatchEvent(new KeyboardEvent("keydown", { key: k, bubbles: true }));
    const mouse = (type, x, y, more) => canvas.dispatchEvent(new MouseEvent(type, { clientX: x, clientY: y, bubbles: true, ...more }));
    const seen = [];
    const note = what => { draw(); seen.push(what + ": " + Math.round(from) + " " + Math.round(to) + " | " + document.getElementById("hits").textContent + " | " + tip.textContent.replace(/\n/g, " ")); };
    const middle = canvas.clientWidth / 2, y0 = canvas.getBoundingClientRect().top;

    note("start");
    key("w");
    note("w zooms in");
    canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -100, clientX: middle, clientY: y0 + 100, bubbles: true, cancelable: true }));
    note("wheel zooms in");
    key("d");
    note("d moves on");
    mouse("mousedown", middle, y0 + 100);
    window.dispatchEvent(new MouseEvent("mousemove", { clientX: middle + canvas.clientWidth / 4, clientY: y0 + 100 }));
    mouse("mouseup", middle + canvas.clientWidth / 4, y0 + 100);
    note("dragged back");
    key("0");
    note("0 shows all");
    key("/");
    searchBox.value = "work";
    searchBox.dispatchEvent(new Event("input"));
    note("search, focus on " + document.activeElement.id);
    searchBox.blur();
    key("n");
    note("n goes to the first hit");
    key("n");
    note("n goes to the second");
    key("N");
    note("N goes back");
    key("Escape");
    key("Escape");
    key("Escape");
    note("Esc goes back");
    const t = trace.threads[0];
    mouse("mousemove", columnOf(8500000), y0 + t.y + 16 * 2 + 8);
    note("over a call");
    mouse("mousedown", columnOf(8500000), y0 + t.y + 16 * 2 + 8);
    mouse("mouseup", columnOf(8500000), y0 + t.y + 16 * 2 + 8);
    note("a click zooms to it");
    const pixels = draw2d.getImageData(0, 0, canvas.width, canvas.height).data;
    const colours = new Set();
    for (let i = 0; i < pixels.length; i += 4)
        colours.add(pixels[i] << 16 | pixels[i + 1] << 8 | pixels[i + 2]);
    seen.push("drawn in colours: " + (colours.size > 4));
    document.body.innerHTML = "";
    const out = document.createElement("pre");
    out.id = "seen";
    out.textContent = "\n" + seen.join("\n") + "\n";
    document.body.append(out);
}
