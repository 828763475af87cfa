/**
 * Reads every packet of a video. Headers state what a recorder meant to write, and the first pictures say nothing about
 * later ones; lengths, counts and rates are therefore those of the packets.
 */
import type { Limits } from './child.ts';
import { bomb } from './failures.ts';

/** The most pictures that x264 and x265 reorder. */
const reordered = 16;
/** From here on a jump in the times of a transport stream is a break between two recordings: ffmpeg's own bounds. */
const backSeconds = 0.1;
const aheadSeconds = 10;

export interface Packet {
  readonly shownAt: number | null;
  readonly decodedAt: number | null;
  /** Seconds; null: not known. */
  readonly seconds: number | null;
  readonly bytes: number;
}

/** What the packets of one stream amount to. Times in seconds. */
export class Tally {
  packets = 0;
  bytes = 0;
  first = Number.POSITIVE_INFINITY;
  last = Number.NEGATIVE_INFINITY;
  /** The time of `last` as the file has it. */
  lastInFile = 0;
  #timed = 0;
  #lasted = 0;
  #clock: number | null = null;
  #shift = 0;
  #shown: number | null = null;
  #shortest = Number.POSITIVE_INFINITY;
  #longest = 0;
  readonly #waiting: number[] = [];
  readonly #breaks: boolean;

  /** @param breaks whether times may begin anew in the middle of the file */
  constructor(breaks: boolean) {
    this.#breaks = breaks;
  }

  add({ shownAt, decodedAt, seconds, bytes }: Packet): void {
    this.packets += 1;
    this.bytes += bytes;
    const clock = decodedAt ?? shownAt;
    if (clock === null) return;
    const step = this.#clock === null ? 0 : clock - this.#clock;
    if (this.#breaks && (step < -backSeconds || step > aheadSeconds)) {
      this.#settle();
      // Both recordings begin with a key picture, which is shown as it is decoded.
      this.#shift += (this.#clock ?? 0) + this.#pace - clock;
    }
    this.#clock = clock;
    this.#timed += 1;
    const inFile = shownAt ?? clock;
    const time = inFile + this.#shift;
    this.first = Math.min(this.first, time);
    if (time > this.last) [this.last, this.lastInFile, this.#lasted] = [time, inFile, seconds ?? 0];
    this.#place(time);
  }

  /** When the last packet has been shown. */
  get end(): number {
    return this.last + (this.#lasted > 0 ? this.#lasted : this.#pace);
  }

  /** Seconds from one packet to the next, on average; 0: there is no next. */
  get #pace(): number {
    return this.#timed < 2 ? 0 : (this.last - this.first) / (this.#timed - 1);
  }

  /** A picture that lasts half as long again as others means a variable rate. Rounding to a millisecond does not. */
  get steady(): boolean {
    this.#settle();
    return this.#longest < 1.5 * Math.max(this.#shortest, 0.000_1);
  }

  #place(time: number): void {
    let at = this.#waiting.length;
    while (at > 0 && (this.#waiting[at - 1] ?? 0) > time) at -= 1;
    this.#waiting.splice(at, 0, time);
    if (this.#waiting.length > reordered) this.#show(this.#waiting.shift());
  }

  #show(time: number | undefined): void {
    if (time === undefined || (this.#shown !== null && time <= this.#shown)) return;
    if (this.#shown !== null) {
      this.#shortest = Math.min(this.#shortest, time - this.#shown);
      this.#longest = Math.max(this.#longest, time - this.#shown);
    }
    this.#shown = time;
  }

  #settle(): void {
    while (this.#waiting.length > 0) this.#show(this.#waiting.shift());
  }
}

const number = (text: string | undefined): number | null => {
  const value = text === undefined ? Number.NaN : Number(text);
  return Number.isFinite(value) ? value : null;
};

/** 12 hours of a camera with 60 pictures a second and eight tracks of sound have some 20 million. */
const maxPackets = 24_000_000;

/** A film of hours is read to its end: 5 GiB, from a slow disk. */
const given = { cpuSeconds: 600, wallMs: 1_800_000 };

/** Runs ffprobe over the file. @throws TranscodeError when it does not succeed */
export type ReadLines = (
  args: readonly string[],
  onLine: (line: string) => void,
  limit: Partial<Limits>,
  signal: AbortSignal,
) => Promise<void>;

const shown = ['-show_entries', 'packet=stream_index,pts_time,dts_time,duration_time,size,flags'];

/**
 * By the index of its stream. Packets that an edit list cuts off are not counted.
 * @param breaks whether times may begin anew in the middle of the file
 * @param max packets of an honest film
 * @throws TranscodeError
 */
export const readPackets = async (
  readLines: ReadLines,
  breaks: boolean,
  signal: AbortSignal,
  max: number = maxPackets,
): Promise<ReadonlyMap<number, Tally>> => {
  const tallies = new Map<number, Tally>();
  const enough = new AbortController();
  let packets = 0;
  const onLine = (line: string): void => {
    const fields: Record<string, string> = {};
    for (const field of line.split('|')) {
      const mark = field.indexOf('=');
      if (mark > 0) fields[field.slice(0, mark)] = field.slice(mark + 1);
    }
    const index = number(fields.stream_index);
    if (index === null || fields.flags?.includes('D')) return;
    packets += 1;
    if (packets > max) {
      enough.abort();
      return;
    }
    const tally = tallies.get(index) ?? new Tally(breaks);
    tallies.set(index, tally);
    const [shownAt, decodedAt] = [number(fields.pts_time), number(fields.dts_time)];
    tally.add({ shownAt, decodedAt, seconds: number(fields.duration_time), bytes: number(fields.size) ?? 0 });
  };
  const args = ['-v', 'error', '-of', 'compact=p=0', ...shown];
  try {
    await readLines(args, onLine, given, AbortSignal.any([signal, enough.signal]));
  } catch (error) {
    if (enough.signal.aborted && !signal.aborted) throw bomb('The video has more parts than any honest video has.');
    throw error;
  }
  return tallies;
};
