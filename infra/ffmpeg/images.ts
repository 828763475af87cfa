/** Works on pictures in a child process. */
import { fileURLToPath } from 'node:url';
import { limits, runTool } from './child.ts';
import { tooMuchWork, unreadable, unsupported } from './failures.ts';

/** 12,000 by 12,000: more than callers' cameras make, and what fits the memory of the child. */
export const maxPixels = 144_000_000;

export interface ImageOutput {
  readonly to: string;
  readonly format: 'jpeg' | 'png' | 'webp' | 'gif';
  readonly width: number;
  readonly height: number;
  readonly fit: 'scale' | 'pad';
  readonly quality: number;
  readonly maxBytes: number | null;
}

export interface ImageJob {
  readonly path: string;
  /** As sniffed. */
  readonly contentType: string;
  readonly threads: number;
  readonly maxPixels: number;
  readonly digitalSourceType: string | null;
  /** Null: only probe. */
  readonly outputs: readonly ImageOutput[] | null;
}

export interface ImageFound {
  /** sharp's name; its `heif` becomes `avif` or `heic` by the content. */
  readonly format: string;
  /** Upright. */
  readonly width: number;
  readonly height: number;
  readonly pages: number;
  readonly alpha: boolean;
  readonly srgb: boolean;
  readonly upright: boolean;
  readonly located: boolean;
  /** From its XMP, which may lie compressed in the file. */
  readonly sourceTypes: readonly string[];
}

export type ImageOutcome =
  | { readonly kind: 'made'; readonly width: number; readonly height: number }
  | { readonly kind: 'too_heavy' }
  | { readonly kind: 'failed'; readonly reason: string };

/** One of them, by the job; `error` when the picture as a whole could not be read. */
export interface ImageAnswer {
  readonly found?: ImageFound;
  readonly outcomes?: readonly ImageOutcome[];
  readonly error?: string;
  /** A HEIC where no decoder for it is installed. */
  readonly undecodable?: boolean;
}

const child = fileURLToPath(new URL('./image-child.ts', import.meta.url));
const cpuSeconds = 120;
/** Address space, of which WebAssembly reserves more than it uses: 48 megapixels of a phone must fit. */
const heicMemory = 10 * 1024 ** 3;

/** @throws TranscodeError */
export const workOnImage = async (job: Omit<ImageJob, 'maxPixels'>, signal: AbortSignal): Promise<ImageAnswer> => {
  const args = [child, JSON.stringify({ ...job, maxPixels } satisfies ImageJob)];
  const grants = { reads: [child, job.path], writes: (job.outputs ?? []).map(({ to }) => to) };
  const memory = job.contentType === 'image/heic' ? { memory: heicMemory } : {};
  const given = limits({ cpuSeconds, wallMs: 2_000 * cpuSeconds, ...memory, ...grants });
  const ended = await runTool(process.execPath, args, given, signal);
  if (ended.struck !== null) throw tooMuchWork('The picture takes more work than it is given.');
  if (ended.code !== 0) {
    throw tooMuchWork(
      'The picture takes more memory than it is given, or breaks what reads it.',
      new Error(ended.stderr),
    );
  }
  const answer = JSON.parse(ended.stdout) as ImageAnswer;
  if (answer.undecodable) throw unsupported('HEIC pictures are not taken by this server; send a JPEG.');
  if (answer.error !== undefined) {
    throw unreadable('The picture is damaged or incomplete.', new Error(answer.error));
  }
  return answer;
};
