const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '400',
  shared_buffers: '128MB',
  work_mem: '16MB',
  maintenance_work_mem: '128MB',
  effective_cache_size: '1GB',
  random_page_cost: '1.1',
  wal_buffers: '16MB',
  min_wal_size: '256MB',
  max_wal_size: '2GB',
  checkpoint_timeout: '15min',
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_checkpoints: 'off',
};
const FORGETFUL = { fsync: 'off', full_page_writes: 'off', max_wal_size: '512MB' };

/** Of the embedded server. `durable` as of `startEmbedded`. */
export const settingsOf = (durable: boolean): Readonly<Record<string, string>> =>
  durable ? SETTINGS : { ...SETTINGS, ...FORGETFUL };
