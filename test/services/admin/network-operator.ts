import { openAdapters } from '#infra/adapters.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { readConfig } from '#runtime/process/config.ts';
import type { Operator } from '#services/workflows/provision.ts';

/** What an operator has who checks a network: the adapters of an installation, and a store of its events. The caller closes them. */
export const openOperator = async (env: Readonly<Record<string, string>> & { readonly SECRET_KEY: string }) => {
  const config = { ...readConfig(env), poolSize: 4 };
  const adapters = await openAdapters({ name: 'admin', config, secrets: new Secrets(env.SECRET_KEY) });
  const store = new DomainStore(adapters.store, new EventCodec(adapters.dataKeys), 12);
  const actor = { type: 'admin', id: 'test' } as const;
  const operator: Operator = { store, pool: adapters.pool, actor, clock: Date.now, positions: new Map() };
  return { adapters, operator };
};
