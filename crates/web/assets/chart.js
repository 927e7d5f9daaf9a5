// @ts-check
// A strip chart: panels under each other with one axis of time, drawn on a canvas.

/** @typedef {{t: number, ab: any, ba: any}} Point */
/** @typedef {{name: string, unit: string, show: (value: number) => string, lines: Line[]}} Panel */
/** @typedef {{of: (point: Point) => number | null, color: string, dash: number[]}} Line */

const MAX_POINTS = 600;
const LEFT = 66;
const GAP = 14;

export class StripChart {
  /** @param {HTMLCanvasElement} canvas @param {Panel[]} panels
   * @param {(point: Point | undefined) => void} pointed */
  constructor(canvas, panels, pointed) {
    this.canvas = canvas;
    this.panels = panels;
    /** @type {Point[]} */
    this.points = [];
    /** @type {number | undefined} */
    this.cursor = undefined;
    this.due = false;
    canvas.addEventListener("pointermove", (event) => {
      this.cursor = event.offsetX;
      pointed(this.at(event.offsetX));
      this.draw();
    });
    canvas.addEventListener("pointerleave", () => {
      this.cursor = undefined;
      pointed(undefined);
      this.draw();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  /** @param {Point[]} points */
  replace(points) {
    this.points = points.slice(-MAX_POINTS);
    this.draw();
  }

  /** @param {Point} point */
  push(point) {
    this.points.push(point);
    if (this.points.length > MAX_POINTS) this.points.shift();
    this.draw();
  }

  draw() {
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => {
      this.due = false;
      this.paint();
    });
  }

  /** From and to in seconds: at least half a minute, at most what the points span.
   * @returns {[number, number]} */
  span() {
    const last = this.points.at(-1)?.t ?? 0;
    const first = this.points[0]?.t ?? last;
    return [Math.min(first, last - 30), last];
  }

  /** The point nearest to a place. @param {number} x */
  at(x) {
    const [from, to] = this.span();
    const width = this.canvas.clientWidth - LEFT - 4;
    const time = from + ((x - LEFT) / width) * (to - from);
    let nearest;
    for (const point of this.points) {
      if (!nearest || Math.abs(point.t - time) < Math.abs(nearest.t - time)) nearest = point;
    }
    return nearest;
  }

  paint() {
    const { canvas } = this;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    const context = canvas.getContext("2d");
    if (!context || !width) return;
    const ratio = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const style = getComputedStyle(canvas);
    const color = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
    context.fillStyle = color("--ground");
    context.fillRect(0, 0, width, height);
    context.font = "12px system-ui, sans-serif";
    const each = (height - 20) / this.panels.length;
    const [from, to] = this.span();
    const x = (/** @type {number} */ t) => LEFT + ((t - from) / (to - from || 1)) * (width - LEFT - 4);
    this.panels.forEach((panel, place) => {
      this.panel(context, color, panel, place * each, each - GAP, x, width);
    });
    context.fillStyle = color("--soft");
    context.textAlign = "right";
    context.fillText("now", width - 4, height - 6);
    context.textAlign = "left";
    context.fillText(`${Math.round(to - from)} s ago`, LEFT, height - 6);
    if (this.cursor !== undefined && this.cursor > LEFT) {
      context.strokeStyle = color("--ink");
      context.lineWidth = 1;
      context.setLineDash([2, 2]);
      context.beginPath();
      context.moveTo(this.cursor, 0);
      context.lineTo(this.cursor, height - 20);
      context.stroke();
      context.setLineDash([]);
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {(name: string) => string} color
   * @param {Panel} panel @param {number} top @param {number} height
   * @param {(t: number) => number} x @param {number} width */
  panel(context, color, panel, top, height, x, width) {
    let most = 0;
    for (const line of panel.lines) {
      for (const point of this.points) most = Math.max(most, line.of(point) ?? 0);
    }
    const limit = nice(most);
    const y = (/** @type {number} */ value) => top + height - (value / limit) * (height - 12);
    context.strokeStyle = color("--grid");
    context.lineWidth = 1;
    context.beginPath();
    for (const level of [y(0), y(limit)]) {
      context.moveTo(LEFT, Math.round(level) + 0.5);
      context.lineTo(width - 4, Math.round(level) + 0.5);
    }
    context.stroke();
    context.fillStyle = color("--soft");
    context.textAlign = "right";
    context.fillText(panel.show(limit), LEFT - 6, y(limit) + 4);
    context.fillText("0", LEFT - 6, y(0) + 2);
    context.fillStyle = color("--ink");
    context.textAlign = "left";
    context.fillText(panel.name, LEFT + 4, top + 9);
    for (const line of panel.lines) {
      context.strokeStyle = color(line.color);
      context.setLineDash(line.dash);
      context.lineWidth = 1.8;
      context.beginPath();
      let open = false;
      for (const point of this.points) {
        const value = line.of(point);
        if (value === null || value === undefined) {
          open = false;
        } else if (open) {
          context.lineTo(x(point.t), y(value));
        } else {
          context.moveTo(x(point.t), y(value));
          open = true;
        }
      }
      context.stroke();
    }
    context.setLineDash([]);
  }
}

/** 1, 2 or 5 times a power of ten at or above. @param {number} most */
export function nice(most) {
  if (!(most > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= most * 0.9999) ?? most;
}
