/**
 * Whether a request is for the host of one of our addresses. Servers that answer for one host alone pin it: a page whose
 * name leads to our address, or a forged name, would otherwise end up in what they answer.
 */

const hostOfUrl = (text: string): string | null => (URL.canParse(text) ? new URL(text).host : null);

/** Compared as a whole: a name with another port, or with a dot at its end, is another host. */
export const isHost = (sent: string | undefined, url: string): boolean => {
  const { protocol, host } = new URL(url);
  return (
    sent !== undefined && !/[/?#@\\]/.test(sent) && !sent.endsWith('.') && hostOfUrl(`${protocol}//${sent}`) === host
  );
};
