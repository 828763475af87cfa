/** The analytics store of a data folder for a moment: the one that a running process of ours keeps, else one of our own. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { noteOf, startEmbeddedAnalytics } from './embedded.ts';

export interface JoinedAnalytics {
  readonly url: string;
  /** Stops an engine that was started for us; leaves another's alone. */
  stop(): Promise<void>;
}

const noted = (dir: string): string | null => {
  try {
    return readFileSync(noteOf(dir), 'utf8');
  } catch {
    return null;
  }
};

const listens = async (url: string): Promise<boolean> => {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
};

export const joinAnalytics = async (dir: string): Promise<JoinedAnalytics> => {
  const url = noted(dir);
  if (url !== null && (await listens(url))) return { url, stop: async () => undefined };
  return startEmbeddedAnalytics({ dir });
};
