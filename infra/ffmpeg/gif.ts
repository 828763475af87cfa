/** Counts the blocks of a GIF without unpacking a pixel: the cost of the frames is known before any is decoded. */
import type { Bytes } from './bytes.ts';
import { unreadable } from './failures.ts';

export interface GifFrames {
  readonly frames: number;
  readonly durationMs: number;
  readonly width: number;
  readonly height: number;
  /** Whether every picture lasts equally long. */
  readonly evenly: boolean;
  readonly transparent: boolean;
}

const windowBytes = 262_144;
const broken = () => unreadable('The GIF ends in the middle of a picture.');

/** Reads ahead in windows; single bytes would be a read each. */
class Reader {
  readonly #bytes: Bytes;
  #window: Buffer = Buffer.alloc(0);
  #at = 0;
  position = 0;
  constructor(bytes: Bytes) {
    this.#bytes = bytes;
  }
  get ended(): boolean {
    return this.position >= this.#bytes.size;
  }
  async byte(): Promise<number> {
    const offset = this.position - this.#at;
    if (offset < 0 || offset >= this.#window.length) {
      this.#window = await this.#bytes.read(this.position, windowBytes);
      this.#at = this.position;
    }
    const value = this.#window[this.position - this.#at];
    if (value === undefined) throw broken();
    this.position += 1;
    return value;
  }
  async word(): Promise<number> {
    return (await this.byte()) + 256 * (await this.byte());
  }
  skip(length: number): void {
    this.position += length;
    if (this.position > this.#bytes.size) throw broken();
  }
  /** Skips sub-blocks up to the empty one. */
  async skipBlocks(): Promise<void> {
    for (let length = await this.byte(); length > 0; length = await this.byte()) this.skip(length);
  }
}

const paletteBytes = (flags: number): number => (flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0);

/**
 * @param max stops after so many pictures
 * @throws TranscodeError
 */
export const gifFrames = async (bytes: Bytes, max: number): Promise<GifFrames> => {
  const reader = new Reader(bytes);
  reader.skip(6);
  const width = await reader.word();
  const height = await reader.word();
  const flags = await reader.byte();
  reader.skip(2 + paletteBytes(flags));
  let frames = 0;
  let hundredths = 0;
  let delay = 0;
  let transparent = false;
  const delays = new Set<number>();
  while (!reader.ended && frames < max) {
    const block = await reader.byte();
    if (block === 0x3b) break;
    if (block === 0x21) {
      const label = await reader.byte();
      if (label === 0xf9) {
        reader.skip(1);
        if (((await reader.byte()) & 1) === 1) transparent = true;
        delay = await reader.word();
        reader.skip(1);
      }
      await reader.skipBlocks();
    } else if (block === 0x2c) {
      reader.skip(8);
      reader.skip(paletteBytes(await reader.byte()) + 1);
      await reader.skipBlocks();
      // As browsers and ffmpeg do: a delay too short to be meant counts as a tenth of a second.
      const shown = delay < 2 ? 10 : delay;
      frames += 1;
      hundredths += shown;
      delays.add(shown);
      delay = 0;
    } else if (block !== 0) throw unreadable('The GIF holds what no GIF holds.');
  }
  if (frames === 0) throw unreadable('The GIF holds no picture.');
  return { frames, durationMs: hundredths * 10, width, height, evenly: delays.size === 1, transparent };
};
