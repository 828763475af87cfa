import type { Finding } from '#contracts/ports/finding.ts';
import type { NetworkCall, NetworkResult } from '#contracts/ports/network-http.ts';

/** Words of the findings of every network. */

export const found = (
  verdict: Finding['verdict'],
  about: string,
  words: string,
  remedy: string | null = null,
): Finding => ({ about, verdict, words, remedy });

/** A network says what it likes, and its words end in a terminal: no control characters, at most 200 characters. */
export const quoted = (said: string): string => {
  const plain = said.slice(0, 2_000).replaceAll(/\p{C}/gu, ' ').trim();
  return `“${[...plain].slice(0, 200).join('')}”`;
};

/** The calls of an examination belong to no account. */
export const nobody: NetworkCall['subject'] = { accountId: '', targetId: null };

type NoAnswer = Exclude<NetworkResult, { readonly kind: 'answered' }>;

/** @param where the setting with which the operator names the server */
export const noAnswer = (about: string, server: string, { kind, reason }: NoAnswer, where: string): Finding =>
  kind === 'unsent'
    ? found(
        ...(['fix', about, `No connection to ${server}: ${reason}.`] as const),
        `Let this machine open connections to ${server} (${where}).`,
      )
    : found(
        ...(['cannot_tell', about, `${server} did not answer: ${reason}.`] as const),
        `Ask again in some minutes; if it stays silent, check ${where} and the proxy of this machine.`,
      );

const loopback = ['localhost', '127.0.0.1', '[::1]'];

/** Where networks send owners back to. @param origin null: the operator has not said */
export const addressOf = (origin: string | null): Finding => {
  const about = 'address';
  if (origin === null) {
    const remedy =
      'Set BASE_URL to the address at which browsers reach this installation, such as https://postline.example.com/v1.';
    return found(
      'fix',
      about,
      'BASE_URL is not set, so networks would send owners back to this machine alone.',
      remedy,
    );
  }
  const { protocol, hostname } = new URL(origin);
  if (protocol === 'https:') return found('ok', about, `Owners come back to ${origin}.`);
  return loopback.includes(hostname)
    ? found('warn', about, `Only this machine reaches ${origin}.`, 'Set BASE_URL before anybody else connects.')
    : found('fix', about, `${origin} is not https.`, 'Serve it over https, and set BASE_URL to that address.');
};
