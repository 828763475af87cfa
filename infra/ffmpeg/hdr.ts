/** HDR that stays HDR: passes the source's statements about its light to a ten-bit encoder. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { SourceFile } from '#contracts/ports/transcoder.ts';
import type { Binaries } from './binaries.ts';
import { limits, runTool } from './child.ts';
import { input } from './input.ts';
import type { Colours } from './picture.ts';

export type KeptColours = Extract<Colours, { kind: 'kept' }>;

const encoders = new Map<string, Promise<boolean>>();

/** Whether this ffmpeg can write ten-bit HEVC. Builds without it are rare: distributions and static ones have it. */
export const writesHevc = ({ ffmpeg }: Binaries): Promise<boolean> => {
  const known = encoders.get(ffmpeg);
  if (known !== undefined) return known;
  const supported = promisify(execFile)(ffmpeg, ['-hide_banner', '-encoders'], { timeout: 10_000 }).then(
    ({ stdout }) => /\blibx265\b/.test(stdout),
    () => false,
  );
  encoders.set(ffmpeg, supported);
  return supported;
};

interface SideData {
  readonly side_data_type?: string;
  readonly [member: string]: unknown;
}

/** `34000/50000`, in units of 1 ÷ `of`. Null: absent. */
const unitsOf = (data: SideData, member: string, of: number): number | null => {
  const [over = Number.NaN, under = 1] = String(data[member]).split('/').map(Number);
  const value = Math.round((over / under) * of);
  return Number.isFinite(value) && value >= 0 ? value : null;
};

/** In x265's format: the mastering screen, in 0.00002 and in 0.0001 of a candela. */
const screenOf = (data: SideData): string | null => {
  const points = ['green', 'blue', 'red', 'white_point'].map((name) => [
    unitsOf(data, `${name}_x`, 50_000),
    unitsOf(data, `${name}_y`, 50_000),
  ]);
  const light = [unitsOf(data, 'max_luminance', 10_000), unitsOf(data, 'min_luminance', 10_000)];
  if ([...points.flat(), ...light].includes(null)) return null;
  const [green, blue, red, white] = points.map(([x, y]) => `(${x},${y})`);
  return `G${green}B${blue}R${red}WP${white}L(${light.join(',')})`;
};

const lightOf = (data: SideData): string | null => {
  const [most, average] = [unitsOf(data, 'max_content', 1), unitsOf(data, 'max_average', 1)];
  return most === null || average === null ? null : `${most},${average}`;
};

const found = <T>(all: readonly SideData[], type: string, read: (data: SideData) => T | null): T | null => {
  const data = all.find(({ side_data_type: its }) => its === type);
  return data === undefined ? null : read(data);
};

/** The transfer and primaries, and the light levels that the first pictures state. */
export const keptColours = async (
  { ffprobe }: Binaries,
  { path, probe }: SourceFile,
  said: Extract<Colours, { kind: 'hdr' }>,
  signal: AbortSignal,
): Promise<KeptColours> => {
  const entries = [
    '-show_entries',
    'frame=side_data_list',
    '-select_streams',
    String(probe.video?.stream ?? 'v'),
    '-read_intervals',
    '%+#4',
  ];
  const args = ['-v', 'error', '-of', 'json', ...entries, '-show_frames', ...input(path, probe.contentType)];
  const { stdout, code } = await runTool(ffprobe, args, limits({ reads: [path] }), signal);
  const frames: readonly { readonly side_data_list?: readonly SideData[] }[] =
    code === 0 ? (JSON.parse(stdout).frames ?? []) : [];
  const side = frames.flatMap(({ side_data_list: list = [] }) => list);
  const { transfer, primaries } = said;
  return {
    kind: 'kept',
    transfer: transfer === '' || transfer === 'unknown' ? 'bt2020-10' : transfer,
    primaries: primaries === 'unknown' ? 'bt2020' : primaries,
    screen: found(side, 'Mastering display metadata', screenOf),
    light: found(side, 'Content light level metadata', lightOf),
  };
};
