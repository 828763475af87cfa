import { lookup, Resolver } from 'node:dns/promises';

/** Addresses of a name. Empty or rejected: there are none, or none could be resolved. */
export type Resolve = (name: string) => Promise<readonly string[]>;

/**
 * Asks name servers, those of the system unless others are given. NOTE: not `dns.lookup`: that occupies one of the few
 * threads of the process, so four names whose servers never answer would stop file access and every other lookup; and
 * it tries the search domains of the machine, so `intranet` would mean `intranet.corp.example`.
 */
export const resolveByDns = (servers?: readonly string[]): Resolve => {
  // Both tries together stay under the 2 s of a lookup, so that one address family without an answer costs only itself.
  const resolver = new Resolver({ timeout: 600, tries: 2, maxTimeout: 900 });
  if (servers !== undefined) resolver.setServers(servers);
  return async (name) => {
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  };
};

/** Resolves as the machine does, with its hosts file and search domains. Only for targets that the config names. */
export const resolveBySystem: Resolve = async (name) =>
  (await lookup(name, { all: true, order: 'verbatim' })).map(({ address }) => address);
