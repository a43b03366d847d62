"""Relays that share what they know in etcd."""
