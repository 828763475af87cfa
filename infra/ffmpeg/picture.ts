/**
 * Filters that turn a source's pictures into those of a rendition: upright, square pixels, progressive, 4:2:0, SDR or
 * unchanged.
 */
import type { MediaProbe, RenditionSpec } from '#schemas/media.ts';
import { picturesOf } from './input.ts';

/** Size and rate of a rendition's pictures; equal ones are made once. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly fit: RenditionSpec['fit'];
  readonly fps: number | null;
}

/**
 * Special colours of a source: HDR, by ffprobe's names, which is mapped to SDR or kept; or HD without a statement of
 * its coding.
 */
export type Colours =
  | { readonly kind: 'hdr'; readonly transfer: string; readonly primaries: string }
  | {
      readonly kind: 'kept';
      readonly transfer: string;
      readonly primaries: string;
      /** In x265's format; null: absent. */
      readonly screen: string | null;
      readonly light: string | null;
    }
  | { readonly kind: 'unsaid' };

const even = (value: number): number => Math.max(2, 2 * Math.round(value / 2));

/** The whole picture inside the frame, as displayed. */
const inner = ({ width, height, fit }: Picture, { width: w, height: h }: MediaProbe) => {
  if (fit === 'scale' || w === null || h === null) return { width, height };
  const factor = Math.min(width / w, height / h);
  return { width: Math.min(width, even(w * factor)), height: Math.min(height, even(h * factor)) };
};

const ntsc = [24, 30, 48, 60, 120].map((rate) => ({ near: (rate * 1_000) / 1_001, exact: `${rate * 1_000}/1001` }));

/** 29.97 is 30000/1001. */
export const exactRate = (fps: number): string =>
  ntsc.find(({ near }) => Math.abs(near - fps) < 0.004)?.exact ?? String(fps);

const paces = [24, 25, 30, 50, 60];

/**
 * Output has a constant rate: the requested one, the source's, or for a variable source the next that loses nothing.
 */
export const paceOf = ({ fps }: Picture, { video }: MediaProbe): number => {
  if (fps !== null) return fps;
  const average = video?.fps ?? 30;
  return video?.constantRate ? average : (paces.find((pace) => pace >= average - 0.5) ?? 60);
};

const zscaleTransfer: Readonly<Record<string, string>> = { smpte2084: 'smpte2084', 'arib-std-b67': 'arib-std-b67' };

/**
 * Maps PQ and HLG through linear light; a source with only a wide gamut is mapped without it. Runs at the output size.
 */
const toSdr = (
  { transfer, primaries }: Extract<Colours, { kind: 'hdr' }>,
  size: { readonly width: number; readonly height: number },
): string => {
  const pin = primaries === 'bt709' ? '709' : '2020';
  const from = `w=${size.width}:h=${size.height}:f=lanczos:pin=${pin}:min=${pin === '709' ? '709' : '2020_ncl'}:rin=tv`;
  const tin = zscaleTransfer[transfer];
  if (tin === undefined) return `zscale=${from}:tin=709:p=709:t=709:m=709:r=tv,format=yuv420p`;
  return [
    `zscale=${from}:tin=${tin}:t=linear:npl=100`,
    'format=gbrpf32le',
    'zscale=p=709',
    'tonemap=tonemap=hable:desat=0',
    'zscale=t=709:m=709:r=tv',
    'format=yuv420p',
  ].join(',');
};

const largest = (pictures: readonly Picture[], probe: MediaProbe) => {
  const sizes = pictures.map((picture) => inner(picture, probe));
  return {
    width: Math.max(...sizes.map(({ width }) => width)),
    height: Math.max(...sizes.map(({ height }) => height)),
  };
};

/** Filters that every picture passes once, whatever the output. */
const shared = (probe: MediaProbe, pictures: readonly Picture[], colours: Colours | null): readonly string[] => [
  ...(probe.video?.interlaced ? ['yadif=0:-1:1'] : []),
  ...(colours?.kind === 'hdr' ? [toSdr(colours, largest(pictures, probe))] : []),
];

/** The coding of the pictures: as stated, as BT.709 whatever is stated, or in HDR that stays. */
type Coding = 'said' | 'known' | 'kept';

const matrices: Readonly<Record<Coding, string>> = {
  said: 'out_color_matrix=bt709:out_range=tv',
  known: 'in_color_matrix=bt709:out_color_matrix=bt709:out_range=tv',
  kept: 'in_color_matrix=bt2020:out_color_matrix=bt2020:out_range=tv',
};

const finish = (picture: Picture, probe: MediaProbe, coding: Coding): string => {
  const { width, height } = inner(picture, probe);
  const pad = picture.fit === 'pad' ? [`pad=${picture.width}:${picture.height}:(ow-iw)/2:(oh-ih)/2:black`] : [];
  const scale = `scale=${width}:${height}:flags=lanczos:${matrices[coding]}`;
  return [scale, ...pad, 'setsar=1', `format=${coding === 'kept' ? 'yuv420p10le' : 'yuv420p'}`].join(',');
};

/** Players take HD without a statement for BT.709; the scaler would take it for BT.601. */
const codingOf = (colours: Colours | null): Coding =>
  colours?.kind === 'kept' ? 'kept' : colours?.kind === 'unsaid' ? 'known' : 'said';

const paced = (picture: Picture, probe: MediaProbe): string =>
  `fps=fps=${exactRate(paceOf(picture, probe))}:start_time=0`;

const key = ({ width, height, fit, fps }: Picture): string => `${width}x${height} ${fit} ${fps}`;

/**
 * The next larger picture of the same shape, from which a smaller one is made at less cost; never made from another
 * itself.
 */
const parentOf = (picture: Picture, larger: readonly Picture[]): Picture | null =>
  larger.findLast(
    (other) =>
      other.fit === 'scale' &&
      picture.fit === 'scale' &&
      other.fps === picture.fps &&
      other.width >= 1.3 * picture.width &&
      Math.abs(other.width / other.height - picture.width / picture.height) < 0.01,
  ) ?? null;

/**
 * One graph for all outputs: the source is decoded once, split, and each distinct picture is made once.
 * @returns filters, and the label of each of `pictures`
 */
export const graphOf = (
  probe: MediaProbe,
  pictures: readonly Picture[],
  colours: Colours | null,
): { readonly filters: readonly string[]; readonly labels: readonly string[] } => {
  const distinct = [...new Map(pictures.map((picture) => [key(picture), picture])).values()].sort(
    (a, b) => b.width * b.height - a.width * a.height,
  );
  const parents = distinct.map((picture, index) => parentOf(picture, distinct.slice(0, index)));
  const roots = distinct.filter((_, index) => parents[index] === null);
  const labels: string[] = [];
  const filters: string[] = [];
  const out = (list: readonly string[]): string => list.map((name) => `[${name}]`).join('');
  const fan = (chain: readonly string[], from: string, to: readonly string[]): void => {
    const steps = to.length === 1 ? chain : [...chain, `split=${to.length}`];
    filters.push(`[${from}]${steps.length === 0 ? 'null' : steps.join(',')}${out(to)}`);
  };
  const flat = probe.kind === 'gif' && probe.image?.alpha === true;
  if (flat) {
    // Transparent parts become white, as in a flattened picture.
    filters.push(`[${picturesOf(0)}]format=rgba,split[over][under]`);
    filters.push('[under]lutrgb=r=255:g=255:b=255:a=255[white]');
    filters.push('[white][over]overlay=format=rgb[flat]');
  }
  fan(
    shared(probe, distinct, colours),
    flat ? 'flat' : picturesOf(0, probe.video?.stream),
    roots.map((picture) => `s${distinct.indexOf(picture)}`),
  );
  distinct.forEach((picture, index) => {
    const takers = pictures.flatMap((other, at) => (key(other) === key(picture) ? [at] : []));
    const children = distinct.flatMap((_, at) => (parents[at] === picture ? [`s${at}`] : []));
    const own = takers.map((at) => `o${at}`);
    for (const at of takers) labels[at] = `o${at}`;
    const parent = parents[index] ?? null;
    const pace = parent === null ? [paced(picture, probe)] : [];
    // NOTE: a scaled picture is BT.709, but an old ffmpeg still takes it for the coding of its source.
    const coding = codingOf(colours);
    const made = finish(picture, probe, parent !== null && coding === 'said' ? 'known' : coding);
    fan([...pace, made], `s${index}`, [...own, ...children]);
  });
  return { filters, labels };
};

/** The filters of a single picture. */
export const chainOf = (probe: MediaProbe, picture: Picture, colours: Colours | null): string =>
  [...shared(probe, [picture], colours), finish(picture, probe, codingOf(colours))].join(',');
