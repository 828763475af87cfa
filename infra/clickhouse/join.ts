/** Opens the analytics store of a data folder briefly: that of a running process, else a new engine of its own. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { startEmbeddedAnalytics } from './embedded.ts';
import { readNote } from './note.ts';
import { proofOf, proofPath } from './proof.ts';

export interface JoinedAnalytics {
  readonly url: string;
  /** Stops an engine that this call started; leaves a joined one running. */
  stop(): Promise<void>;
}

/** The engine may have to start first. */
const proofMs = 35_000;

/** Whether the listener has the password: after a crash another program may have the port. */
const isTheOne = async ({ hostname, port, password }: URL): Promise<boolean> => {
  const nonce = randomBytes(16).toString('hex');
  const wanted = proofOf(password, nonce);
  const asked = get({
    ...{ hostname, port, path: `${proofPath}?${nonce}` },
    agent: false,
    signal: AbortSignal.timeout(proofMs),
  });
  try {
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    return answer.headers['content-length'] === String(wanted.length) && (await text(answer)) === wanted;
  } catch {
    return false;
  } finally {
    asked.on('error', () => undefined).destroy();
  }
};

export const joinAnalytics = async (dir: string): Promise<JoinedAnalytics> => {
  const noted = readNote(dir);
  if (noted !== null && (await isTheOne(noted))) return { url: noted.href, stop: async () => undefined };
  return startEmbeddedAnalytics({ dir });
};
