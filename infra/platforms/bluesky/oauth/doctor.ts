import { isDeepStrictEqual } from 'node:util';
import type { Finding } from '#contracts/ports/finding.ts';
import type { NetworkHttp } from '#contracts/ports/network-http.ts';
import { found, noAnswer, nobody } from '../../shared/findings.ts';
import { parsed } from '../../shared/members.ts';
import { clientAt, documentsOf, type ProofKeys } from './client.ts';

/** What servers will say of our client: they read its documents at the address of this installation, and so do we. */

export interface ClientDoctorOptions {
  readonly http: NetworkHttp;
  /** Null: owners give an app password. */
  readonly keys: ProofKeys | null;
  /** Host of the pages behind links, as browsers reach it; null: the operator has not said. */
  readonly origin: string | null;
}

const about = 'client';

export const examineClient = async (
  { http, keys, origin }: ClientDoctorOptions,
  signal: AbortSignal,
): Promise<Finding> => {
  if (keys === null) {
    const remedy = 'To let owners consent on the page of their server too, set BLUESKY_OAUTH_KEYS.';
    return found('off', about, 'BLUESKY_OAUTH_KEYS is not set: owners give an app password.', remedy);
  }
  if (origin === null) {
    return found('fix', about, 'Servers cannot send owners back: BASE_URL is not set.', 'Set BASE_URL.');
  }
  const ours = clientAt(`${origin}/connect/callback`, keys);
  if ('wrong' in ours)
    return found('fix', about, `${ours.wrong}.`, 'Set CONSOLE_URL (or BASE_URL) to such an address.');
  if (ours.kind === 'loopback') {
    const words = 'Owners consent to a client of this machine alone, for two weeks at a time.';
    return found('warn', about, words, 'Set BASE_URL to an https address before anybody else connects.');
  }
  for (const [path, expected] of Object.entries(documentsOf(origin, keys))) {
    const url = `${origin}/connect/${path}`;
    const headers = { accept: 'application/json' };
    const result = await http.send({ method: 'GET', url, headers, body: [], subject: nobody }, signal);
    if (result.kind !== 'answered') return noAnswer(about, origin, result, 'BASE_URL');
    if (result.status !== 200 || !isDeepStrictEqual(parsed(result.body), expected)) {
      const words = `${url} answers ${result.status}, with another document than that of this installation.`;
      const remedy =
        'Start the API with the same BASE_URL, CONSOLE_URL and BLUESKY_OAUTH_KEYS, and let a proxy pass /connect/ on to it.';
      return found('fix', about, words, remedy);
    }
  }
  return found('ok', about, `Servers read of our client at ${ours.id}.`);
};
