import { wellFormedText } from '#runtime/eventing/well-formed.ts';

/** What a network shows of an account, cut to what an event of the account holds. A network may be anybody's server. */

interface Profile {
  readonly username: string | null;
  readonly displayName: string | null;
  readonly avatarUrl: string | null;
}

const maxName = 200;
const maxUrl = 2_000;

const nameOf = (text: string | null): string | null => (text === null ? null : wellFormedText(text, maxName) || null);

/** A cut address shows nothing, and browsers run some addresses as code: only a whole https address is kept. */
const pictureOf = (address: string | null): string | null => {
  const url = address === null ? null : URL.parse(address);
  return url?.protocol === 'https:' && url.href.length <= maxUrl ? url.href : null;
};

export const shownProfile = ({ username, displayName, avatarUrl }: Profile): Profile => ({
  username: nameOf(username),
  displayName: nameOf(displayName),
  avatarUrl: pictureOf(avatarUrl),
});
