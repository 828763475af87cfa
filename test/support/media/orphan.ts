/** Starts a long render and prints a line, to be killed: `orphan.ts <path> <folder>`. */
import { openTranscoder } from '#infra/ffmpeg/index.ts';
import { never, videoSpec } from './specs.ts';

const [path = '', workDir = ''] = process.argv.slice(2);
const transcoder = openTranscoder({ ffmpegPath: process.env.FFMPEG_PATH ?? null, workDir, warn: () => {} });
const sniffed = await transcoder.sniff(path);
if (sniffed === null) throw new Error('no clip');
const probe = await transcoder.probe(path, sniffed, { signal: never() });
const wanted = [{ id: '0'.repeat(32), spec: videoSpec({ width: 1_920, height: 1_080 }), to: `${workDir}/made.mp4` }];
const onProgress = (): void => void process.send?.('rendering');
await transcoder.render({ path, probe }, wanted, { threads: 1, signal: never(), onProgress });
