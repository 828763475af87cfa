import { parseArgs } from 'node:util';
import { examineNetworks } from '#infra/platforms/doctor.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { guardOf } from '#runtime/egress/own-hosts.ts';
import { ConfigError, type ConfigOf, configHelp, processEnv, readConfig } from '#runtime/process/config.ts';
import { callsOut, networks } from '#runtime/process/settings/reads.ts';
import { asJson, mustBeFixed, printed } from './print.ts';

/** Examines an installation from outside of it: it needs its settings and no database. */

const reads = [...callsOut, ...networks, 'tiktokSiteProof', 's3Endpoint', 's3PublicEndpoint'] as const;

const help = `Usage: npm run doctor -- networks [--json]

Asks each network what it says of this installation: app, redirect address, scopes, servers, API version; and this
installation, whether what networks look for is there. It reads the
settings of the api's process, publishes nothing, and shows no secret.

  ok           works
  soon         works now, and will not for long
  fix          does not work until the line below is done
  cannot tell  cannot be known from here; the line below says where to look
  off          not set up

  --json  the answer as JSON on standard output

Exit code: 0 nothing must be fixed, 1 something must, 2 not understood.

Environment:

${configHelp(reads)}
`;

class Misuse extends Error {}

/** Null asks for the help. @throws Misuse */
const readAsked = (args: string[]): { readonly json: boolean } | null => {
  if (args.length === 0) return null;
  const options = { json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } } as const;
  try {
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
    if (values.help === true) return null;
    if (positionals.length === 1 && positionals[0] === 'networks') return { json: values.json === true };
    throw new Misuse(`The doctor examines networks, not ${JSON.stringify(positionals.join(' '))}.`);
  } catch (error) {
    throw error instanceof Misuse ? error : new Misuse(error instanceof Error ? error.message : String(error));
  }
};

const examine = async ({ json }: { readonly json: boolean }): Promise<void> => {
  const config: ConfigOf<(typeof reads)[number]> = readConfig(processEnv());
  const address = config.consoleUrl ?? config.baseUrl;
  const http = new GuardedNetworkHttp(guardOf(config));
  const stopping = new AbortController();
  process.once('SIGINT', () => stopping.abort(new Error('stopped by Ctrl-C')));
  const origin = address === null ? null : new URL(address).origin;
  const files = config.baseUrl?.replace(/\/v1$/, '') ?? null;
  const examined = await examineNetworks({ http, clock: Date.now, config, origin, files }, stopping.signal);
  process.stdout.write(`${json ? asJson(examined) : printed(examined)}\n`);
  if (mustBeFixed(examined) > 0) process.exitCode = 1;
};

try {
  const asked = readAsked(process.argv.slice(2));
  if (asked === null) process.stdout.write(help);
  else await examine(asked);
} catch (error) {
  if (!(error instanceof Misuse) && !(error instanceof ConfigError)) throw error;
  process.stderr.write(`${error.message}\nSee npm run doctor -- --help.\n`);
  process.exitCode = 2;
}
