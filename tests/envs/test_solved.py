from bisac.envs.solved import judged


def test_what_solves_a_task_is_told_where_it_is_known():
    assert judged("Pendulum-v1", -160.0).startswith("yes: from -200 on (it swings up")
    assert judged("Hopper-v5", 1000.0) == "not yet: from 3,800 on (Gymnasium's mark)"
    assert judged("Reacher-v5", -3.0) == "yes: from -3.75 on (Gymnasium's mark)"
    assert judged("Walker2d-v5", 5000.0) is None
    assert judged("MyTask-v0", 1.0) is None
