/** Which host a request is for. */

const hostOfUrl = (text: string): string | null => (URL.canParse(text) ? new URL(text).host : null);

/**
 * Compared as a whole: a name with another port, or with a dot at its end, is another host.
 * @param sent the header Host
 */
export const isHost = (sent: string | undefined, url: string): boolean => {
  const { protocol, host } = new URL(url);
  return (
    sent !== undefined && !/[/?#@\\]/.test(sent) && !sent.endsWith('.') && hostOfUrl(`${protocol}//${sent}`) === host
  );
};
