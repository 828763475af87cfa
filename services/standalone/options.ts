import { BlockList, isIP } from 'node:net';
import { parseArgs } from 'node:util';
import { type Config, configHelp } from '#runtime/process/config.ts';

/** The options of the command line of standalone. */

export interface Options {
  readonly port: number | null;
  readonly dataDir: string | null;
  /** Runs the tour again and exits with its result. */
  readonly tourOnly: boolean;
  readonly tour: boolean;
  /** Leaves the tour of the first start out. */
  readonly noTour: boolean;
  readonly help: boolean;
}

export const help = (): string => `Usage: npm start -- [options]      (or: make run ARGS="[options]")

Starts everything on this machine: Postgres under the data folder, the event store and its log, the projections, the
publisher and the API. The first start makes a workspace with keys and runs the main job before your eyes.

Options:
  --port <n>     port of the API (default 8080, or PORT; 0 = any free one)
  --data <dir>   folder of all data (default ./data, or DATA_DIR)
  --tour         run the tour also on a later start
  --no-tour      serve at once, also at the first start
  --tour-only    run the tour, then stop: exit code 0 when all its targets ended as they should
  --help         this text

Environment:

${configHelp()}
`;

export class UsageError extends Error {}

/** @throws UsageError that says what to write instead */
export const readOptions = (args: readonly string[]): Options => {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        port: { type: 'string' },
        data: { type: 'string' },
        tour: { type: 'boolean', default: false },
        'no-tour': { type: 'boolean', default: false },
        'tour-only': { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    const port = values.port === undefined ? null : Number(values.port);
    if (port !== null && !(Number.isInteger(port) && port >= 0 && port <= 65_535)) {
      throw new UsageError(`--port must be a number from 0 to 65535, not ${JSON.stringify(values.port)}`);
    }
    const { data = null, tour, 'no-tour': noTour, 'tour-only': tourOnly, help } = values;
    if (noTour && (tour || tourOnly)) throw new UsageError(`--no-tour contradicts ${tour ? '--tour' : '--tour-only'}`);
    return { port, dataDir: data, tour, noTour, tourOnly, help };
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
};

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** On loopback the person who tries this out uploads their own videos; at any other address strangers do. */
export const outdatedFfmpegAt = (host: string): Config['outdatedFfmpeg'] => {
  const family = isIP(host);
  const local = family === 0 ? host === 'localhost' : loopback.check(host, family === 6 ? 'ipv6' : 'ipv4');
  return local ? 'take' : 'refuse';
};
