import { writeSync } from 'node:fs';

/**
 * Writes the lines of a logger. A full disk, or a stalled reader of standard output, must not end the process or hold
 * it up: lines that cannot be written are dropped and counted, and a line with their number precedes the next written
 * one.
 */

export interface LinesOptions {
  /** Called before each write. */
  readonly descriptor: () => number;
  /** Bytes that are gathered before a write; 0 = none. */
  readonly gathered: number;
  /** Milliseconds that lines wait for others, and that a count of dropped lines waits for the next try. */
  readonly lingerMs: number;
  /** Makes the line with the number of dropped lines. */
  readonly gap: (dropped: number, why: string) => string;
}

/**
 * The first write into a full pipe waits this long, in steps; further writes do not wait while it stays full.
 * Milliseconds.
 */
const patienceMs = 500;
const stepMs = 5;
const waiting = new Int32Array(new SharedArrayBuffer(4));

const newlines = (bytes: Uint8Array, to: number): number => {
  let found = 0;
  for (let at = bytes.indexOf(10); at !== -1 && at < to; at = bytes.indexOf(10, at + 1)) found += 1;
  return found;
};

export class Lines {
  readonly #options: LinesOptions;
  #waiting: string[] = [];
  #length = 0;
  #dropped = 0;
  /** Dropped, and not yet reported in a written line. */
  #unreported = 0;
  #why = '';
  /** The last write ended within a line: the next begins with a line break. */
  #torn = false;
  /** Runs only while lines wait: an idle process is never woken for its log. */
  #lingering: NodeJS.Timeout | null = null;

  constructor(options: LinesOptions) {
    this.#options = options;
  }

  /** Since the start. */
  get dropped(): number {
    return this.#dropped;
  }

  write(line: string): void {
    this.#waiting.push(line);
    this.#length += line.length;
    if (this.#length >= this.#options.gathered) this.flushSync();
    else this.#linger();
  }

  #linger(): void {
    this.#lingering ??= setTimeout(() => {
      this.#lingering = null;
      this.flushSync();
    }, this.#options.lingerMs).unref();
  }

  /** As pino calls it. */
  flush(done?: () => void): void {
    this.flushSync();
    done?.();
  }

  flushSync(): void {
    const lines = this.#waiting;
    if (lines.length === 0 && this.#unreported === 0) return;
    this.#waiting = [];
    this.#length = 0;
    const head = [this.#torn ? '\n' : '', this.#unreported > 0 ? this.#options.gap(this.#unreported, this.#why) : ''];
    const bytes = Buffer.from([...head, ...lines].join(''));
    const { written, why } = this.#put(bytes);
    if (why === null) {
      this.#torn = false;
      this.#unreported = 0;
      return;
    }
    this.#why = why;
    const whole = newlines(bytes, written) - (this.#torn ? 1 : 0);
    const reported = this.#unreported > 0 ? 1 : 0;
    const lost = lines.length - Math.max(0, whole - reported);
    this.#dropped += lost;
    this.#unreported = lost + (whole >= 1 ? 0 : this.#unreported);
    this.#linger();
    if (written > 0) this.#torn = bytes[written - 1] !== 10;
  }

  /** One descriptor for the whole batch: it must not begin in one file and end in another. */
  #put(bytes: Buffer): { readonly written: number; readonly why: string | null } {
    let written = 0;
    try {
      const descriptor = this.#options.descriptor();
      while (written < bytes.length) written += this.#some(descriptor, bytes, written);
      return { written, why: null };
    } catch (error) {
      return { written, why: (error as NodeJS.ErrnoException).code ?? String(error) };
    }
  }

  /** Waits briefly for a full pipe. @returns bytes written */
  #some(descriptor: number, bytes: Buffer, from: number): number {
    for (const until = performance.now() + (this.#unreported > 0 ? 0 : patienceMs); ; ) {
      try {
        return writeSync(descriptor, bytes, from);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || performance.now() > until) throw error;
        Atomics.wait(waiting, 0, 0, stepMs);
      }
    }
  }
}
