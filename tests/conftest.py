"""Property tests take the time they need: this suite also runs on busy machines."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "here", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("here")
